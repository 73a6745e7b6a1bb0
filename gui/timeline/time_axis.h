// SPDX-License-Identifier: GPL-3.0-or-later
// Which part of a timeline a width of pixels shows: time to pixels and back, zoom, pan, ticks.
//
// A plain value and pure functions. Nanoseconds from the timeline's start; pixels from the left.
#pragma once

#include <QString>
#include <vector>

namespace tessera::gui {

struct TimeAxis {
  double start_ns = 0;  // at pixel 0
  double ns_per_pixel = 1;

  double x_of(double ns) const { return (ns - start_ns) / ns_per_pixel; }
  double time_at(double x) const { return start_ns + x * ns_per_pixel; }
  bool operator==(const TimeAxis&) const = default;
};

/// All from `first_ns` to `last_ns` in `width` pixels.
TimeAxis fitted(double first_ns, double last_ns, int width);

/// `factor` times as many nanoseconds a pixel; the time at pixel `x` stays where it is.
TimeAxis zoomed(const TimeAxis& axis, double factor, double x);

/// Moved to the right by pixels.
TimeAxis panned(const TimeAxis& axis, double pixels);

/// The nearest axis that shows nothing before 0 or behind `end_ns`, and no less than a thousandth
/// of a nanosecond a pixel.
TimeAxis bounded(const TimeAxis& axis, double end_ns, int width);

struct Tick {
  double x = 0;
  QString text;  // "12.5 ms"
};

/// At 1, 2 or 5 times a power of ten, about `apart` pixels from one another.
std::vector<Tick> ticks_of(const TimeAxis& axis, int width, int apart);

}  // namespace tessera::gui
