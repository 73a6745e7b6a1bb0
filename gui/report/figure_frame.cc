// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/report/figure_frame.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "gui/document/text.h"

namespace tessera::gui {

QString coordinate_text(double value) {
  const QString text = QString::number(value, 'f', 1);
  return text.endsWith(".0") ? text.chopped(2) : text;
}

void open_figure(Markup& to, const QString& title, double width, double height) {
  to.open("figure");
  if (!title.isEmpty()) to.element("figcaption", title);
  to.open("svg", {{"xmlns", "http://www.w3.org/2000/svg"},
                  {"viewBox", "0 0 " + coordinate_text(width) + " " + coordinate_text(height)},
                  {"width", coordinate_text(width)},
                  {"role", "img"},
                  {"aria-label", title}});
}

void close_figure(Markup& to, const std::vector<std::pair<QString, QColor>>& legend) {
  to.close();
  if (!legend.empty()) {
    to.open("p", {{"class", "legend"}});
    for (const auto& [name, colour] : legend) {
      to.open("span");
      add_swatch(to, colour);
      to.text(name);
      to.close();
    }
    to.close();
  }
  to.close();
}

void add_box(Markup& to, double x, double y, double width, double height, const QColor& colour,
             const QString& detail) {
  to.open("rect", {{"x", coordinate_text(x)},
                   {"y", coordinate_text(y)},
                   {"width", QString::number(std::max(0.0, width), 'f', 2)},
                   {"height", QString::number(std::max(0.0, height), 'f', 2)},
                   {"fill", colour.name()}});
  if (colour.alpha() < 255) to.attribute("fill-opacity", QString::number(colour.alphaF(), 'g', 2));
  if (!detail.isEmpty()) to.element("title", detail);
  to.close();
}

void add_line(Markup& to, double x1, double y1, double x2, double y2, const char* css_class) {
  to.empty("line", {{"x1", coordinate_text(x1)},
                    {"y1", coordinate_text(y1)},
                    {"x2", coordinate_text(x2)},
                    {"y2", coordinate_text(y2)},
                    {"class", css_class}});
}

void add_label(Markup& to, double x, double y, const QString& text, const char* css_class) {
  to.element("text", text,
             {{"x", coordinate_text(x)}, {"y", coordinate_text(y)}, {"class", css_class}});
}

double ValueAxis::at(double value) const {
  return left + (right - left) * std::clamp((value - low) / (high - low), 0.0, 1.0);
}

std::vector<double> ticks_of(double low, double high, int most, FigureUnit unit) {
  double scale = 1;
  if (unit == byte_number) {
    for (int power = 0; power < 3 && high >= 1024 * scale; ++power) scale *= 1024;
  }
  std::vector<double> ticks = round_ticks(low / scale, high / scale, most);
  for (double& tick : ticks) tick *= scale;
  return ticks;
}

void add_grid(Markup& to, const ValueAxis& axis, double top, double bottom, FigureUnit unit) {
  for (const double tick : ticks_of(axis.low, axis.high, 6, unit)) {
    const double x = axis.at(tick);
    add_line(to, x, top, x, bottom, "grid");
    add_label(to, x, bottom + 14, unit(tick), "tick middle");
  }
}

std::vector<double> round_ticks(double low, double high, int most) {
  const double range = high - low;
  if (!(range > 0) || !std::isfinite(range)) return {};
  const double power = std::pow(10.0, std::floor(std::log10(range / most)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (range / (factor * power) > most) continue;
    step = factor * power;
    break;
  }
  std::vector<double> ticks;
  if (!(step > 0)) return ticks;
  const double first = std::ceil(low / step);
  for (int i = 0; i <= most; ++i) {
    const double tick = (first + i) * step;
    if (tick > high + 1e-9 * range) break;
    ticks.push_back(tick == 0 ? 0 : tick);  // no "-0"
  }
  return ticks;
}

QString plain_number(double value) { return QString::number(value, 'g', 4); }

QString second_number(double seconds) { return seconds == 0 ? "0 s" : secondsText(seconds); }

QString byte_number(double bytes) {
  return bytesText(static_cast<std::int64_t>(std::clamp(bytes, -9e18, 9e18)));
}

}  // namespace tessera::gui
