// SPDX-License-Identifier: GPL-3.0-or-later
// What the area of a timeline's picture adds up to, or all of its rows without one. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "gui/step_views/timeline_painter.h"
#include "gui/timeline/lane_gap.h"

namespace tessera::gui {

struct AreaSums {
  std::vector<SpanTotal> totals;
  IdleTotal idle;
  /// Time of the area (or of all) times its ranks, of a folded group one.
  std::int64_t area_ns = 0;
};
AreaSums sums_of(const TimelinePicture& picture);

}  // namespace tessera::gui
