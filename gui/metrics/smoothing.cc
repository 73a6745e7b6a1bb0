// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/metrics/smoothing.h"

#include <algorithm>

namespace tessera::gui {

std::vector<QPointF> smoothed(const std::vector<QPointF>& points, double weight) {
  std::vector<QPointF> out = points;
  double mean = 0, weights = 0;
  for (QPointF& point : out) {
    mean = weight * mean + (1 - weight) * point.y();
    weights = weight * weights + (1 - weight);
    point.setY(mean / weights);
  }
  return out;
}

std::optional<std::size_t> nearest(const std::vector<QPointF>& points, double step) {
  if (points.empty()) return std::nullopt;
  const auto behind =
      std::lower_bound(points.begin(), points.end(), step,
                       [](const QPointF& point, double at) { return point.x() < at; });
  auto at = static_cast<std::size_t>(behind - points.begin());
  if (at == points.size()) return at - 1;
  if (at > 0 && step - points[at - 1].x() < points[at].x() - step) --at;
  return at;
}

}  // namespace tessera::gui
