// SPDX-License-Identifier: GPL-3.0-or-later
// Pictures over the steps of a run: lines and columns.
#include <algorithm>
#include <cmath>
#include <limits>

#include "gui/report/figure.h"
#include "gui/report/figure_frame.h"

namespace tessera::gui {
namespace {

constexpr double kPlotWidth = 440, kPlotHeight = 190, kPlotLeft = 66, kPlotRight = 12, kPlotTop = 8,
                 kPlotBottom = 24;
constexpr double kLargest = 1e300;  // so that differences stay finite

/// Steps to the right, values upwards.
struct Plane {
  ValueAxis steps, values;

  QPointF at(const QPointF& point) const {
    return {steps.at(point.x()), values.at(std::clamp(point.y(), -kLargest, kLargest))};
  }
};

Plane plane_of(double first, double last, double low, double high) {
  low = std::clamp(low, -kLargest, kLargest);
  high = std::clamp(high, -kLargest, kLargest);
  if (!(high > low)) {
    const double room = std::max(0.05 * std::abs(low), 0.5);
    low -= room;
    high += room;
  }
  if (!(last > first)) {
    first -= std::max(0.5, 1e-9 * std::abs(first));
    last += std::max(0.5, 1e-9 * std::abs(last));
  }
  return {{first, last, kPlotLeft, kPlotWidth - kPlotRight},
          {low, high, kPlotHeight - kPlotBottom, kPlotTop}};
}

void add_axes(Markup& to, const Plane& plane, FigureUnit unit) {
  for (const double tick : ticks_of(plane.values.low, plane.values.high, 5, unit)) {
    const double y = plane.values.at(tick);
    add_line(to, kPlotLeft, y, kPlotWidth - kPlotRight, y, "grid");
    add_label(to, kPlotLeft - 6, y + 4, unit(tick), "tick end");
  }
  for (const double tick : round_ticks(plane.steps.low, plane.steps.high, 6)) {
    if (tick != std::floor(tick)) continue;
    add_label(to, plane.steps.at(tick), kPlotHeight - 6, QString::number(tick, 'f', 0),
              "tick middle");
  }
}

/// At most two points a pixel: the lowest and the highest, in their order.
std::vector<QPointF> thinned(const std::vector<QPointF>& points, const Plane& plane) {
  std::vector<QPointF> drawn;
  for (std::size_t i = 0; i < points.size();) {
    const double pixel = std::floor(plane.steps.at(points[i].x()));
    std::size_t end = i, low = i, high = i;
    for (; end < points.size() && std::floor(plane.steps.at(points[end].x())) == pixel; ++end) {
      if (points[end].y() < points[low].y()) low = end;
      if (points[end].y() > points[high].y()) high = end;
    }
    drawn.push_back(plane.at(points[std::min(low, high)]));
    if (low != high) drawn.push_back(plane.at(points[std::max(low, high)]));
    i = end;
  }
  return drawn;
}

std::vector<QPointF> finite_points(const std::vector<QPointF>& points) {
  std::vector<QPointF> kept;
  for (const QPointF& point : points) {
    if (std::isfinite(point.x()) && std::isfinite(point.y())) kept.push_back(point);
  }
  return kept;
}

void add_path(Markup& to, const FigureLine& line, const std::vector<QPointF>& drawn) {
  QStringList points;
  for (const QPointF& point : drawn) {
    points << coordinate_text(point.x()) + "," + coordinate_text(point.y());
  }
  to.empty("polyline", {{"points", points.join(' ')},
                        {"class", line.dashed ? "line dashed" : "line"},
                        {"stroke", line.colour.name()}});
  constexpr std::size_t kFew = 40;
  if (line.dashed || drawn.size() > kFew) return;
  for (const QPointF& point : drawn) {
    to.empty("circle", {{"cx", coordinate_text(point.x())},
                        {"cy", coordinate_text(point.y())},
                        {"r", "2"},
                        {"fill", line.colour.name()}});
  }
}

}  // namespace

void draw_lines(Markup& to, const QString& title, FigureUnit unit,
                const std::vector<FigureLine>& lines) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  double first = kNone, last = -kNone, low = kNone, high = -kNone;
  std::vector<std::vector<QPointF>> all;
  std::vector<std::pair<QString, QColor>> legend;
  for (const FigureLine& line : lines) {
    all.push_back(finite_points(line.points));
    for (const QPointF& point : all.back()) {
      first = std::min(first, point.x());
      last = std::max(last, point.x());
      low = std::min(low, point.y());
      high = std::max(high, point.y());
    }
    if (lines.size() > 1) legend.emplace_back(line.name, line.colour);
  }
  if (!(first <= last)) return;
  const Plane plane = plane_of(first, last, low, high);
  open_figure(to, title, kPlotWidth, kPlotHeight);
  add_axes(to, plane, unit);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!all[i].empty()) add_path(to, lines[i], thinned(all[i], plane));
  }
  close_figure(to, legend);
}

void draw_columns(Markup& to, const QString& title, FigureUnit unit, double first, double last,
                  const std::vector<FigureSeries>& series) {
  const std::size_t columns = series.empty() ? 0 : series.front().values.size();
  if (columns == 0) return;
  std::vector<double> sums(columns, 0.0);
  for (const FigureSeries& each : series) {
    for (std::size_t i = 0; i < columns; ++i) {
      sums[i] += std::clamp(each.values[i], 0.0, kLargest / 100);
    }
  }
  const Plane plane = plane_of(first, last, 0, *std::max_element(sums.begin(), sums.end()));
  open_figure(to, title, kPlotWidth, kPlotHeight);
  add_axes(to, plane, unit);
  const double wide = (plane.steps.right - plane.steps.left) / static_cast<double>(columns);
  sums.assign(columns, 0.0);
  std::vector<std::pair<QString, QColor>> legend;
  for (const FigureSeries& each : series) {
    legend.emplace_back(each.name, each.colour);
    for (std::size_t i = 0; i < columns; ++i) {
      const double value = std::clamp(each.values[i], 0.0, kLargest / 100);
      if (value <= 0) continue;
      const double bottom = plane.values.at(sums[i]);
      sums[i] += value;
      const double top = plane.values.at(sums[i]);
      add_box(to, plane.steps.left + wide * static_cast<double>(i), top,
              wide * (columns > 60 ? 1.0 : 0.85), bottom - top, each.colour,
              each.name + ": " + unit(value));
    }
  }
  close_figure(to, legend);
}

}  // namespace tessera::gui
