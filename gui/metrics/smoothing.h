// SPDX-License-Identifier: GPL-3.0-or-later
// A metric over the steps as a chart draws it: smoothed, and read where one points.
//
// Pure functions of points (step, value), ascending by step.
#pragma once

#include <QPointF>
#include <cstddef>
#include <optional>
#include <vector>

namespace tessera::gui {

/// The exponential moving mean of the values: `weight` of the mean so far and the rest of the
/// step's own value, divided by the weights that there are so far, so that the first steps are not
/// drawn towards 0 (as TensorBoard smooths). Weight 0: the points as they are. Precondition:
/// 0 <= weight < 1.
std::vector<QPointF> smoothed(const std::vector<QPointF>& points, double weight);

/// The point whose step is nearest; nullopt where there is none.
std::optional<std::size_t> nearest(const std::vector<QPointF>& points, double step);

}  // namespace tessera::gui
