// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/time_axis.h"

#include <algorithm>
#include <cmath>

namespace tessera::gui {
namespace {

constexpr double kLeastNsPerPixel = 1e-3;

// With as many digits as two ticks need to differ.
// A number below 10,000 stands before the unit.
QString tick_text(double ns, double step_ns, double last_ns) {
  constexpr double kLong = 1e4;
  double unit = step_ns >= 1e8 ? 1e9 : step_ns >= 1e5 ? 1e6 : step_ns >= 1e2 ? 1e3 : 1;
  while (unit < 1e9 && last_ns / unit >= kLong) unit *= 1e3;
  const char* const name = unit == 1e9 ? "s" : unit == 1e6 ? "ms" : unit == 1e3 ? "us" : "ns";
  const int digits = std::max(0, static_cast<int>(-std::floor(std::log10(step_ns / unit) + 1e-9)));
  return QString::number(ns / unit, 'f', digits) + " " + name;
}

}  // namespace

TimeAxis fitted(double first_ns, double last_ns, int width) {
  const double length = std::max(1.0, last_ns - first_ns);
  return {first_ns, std::max(kLeastNsPerPixel, length / std::max(1, width))};
}

TimeAxis zoomed(const TimeAxis& axis, double factor, double x) {
  TimeAxis other{axis.start_ns, std::max(kLeastNsPerPixel, axis.ns_per_pixel * factor)};
  other.start_ns = axis.time_at(x) - x * other.ns_per_pixel;
  return other;
}

TimeAxis panned(const TimeAxis& axis, double pixels) {
  return {axis.start_ns + pixels * axis.ns_per_pixel, axis.ns_per_pixel};
}

TimeAxis bounded(const TimeAxis& axis, double end_ns, int width) {
  const double most = std::max(kLeastNsPerPixel, end_ns / std::max(1, width));
  TimeAxis inside = axis;
  inside.ns_per_pixel = std::clamp(axis.ns_per_pixel, kLeastNsPerPixel, most);
  const double last = std::max(0.0, end_ns - width * inside.ns_per_pixel);
  inside.start_ns = std::clamp(axis.start_ns, 0.0, last);
  return inside;
}

std::vector<Tick> ticks_of(const TimeAxis& axis, int width, int apart) {
  const double least = axis.ns_per_pixel * std::max(1, apart);
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  double step = power;
  for (const double factor : {2.0, 5.0, 10.0}) {
    if (step < least) step = factor * power;
  }
  std::vector<Tick> ticks;
  for (double at = std::ceil(axis.start_ns / step - 1e-9); at * step <= axis.time_at(width); ++at) {
    ticks.push_back({axis.x_of(at * step), tick_text(at * step, step, axis.time_at(width))});
  }
  return ticks;
}

}  // namespace tessera::gui
