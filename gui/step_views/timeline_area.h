// SPDX-License-Identifier: GPL-3.0-or-later
// What the area of a timeline's picture adds up to, or all of its rows without one. Pure functions.
#pragma once

#include <cstddef>
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

/// The lines and the time that are summed.
struct SummedArea {
  std::vector<Lane> lanes;
  std::int64_t from_ns = 0, to_ns = 0;

  /// That lie in the lines, whether they lie in the time or not.
  std::size_t spans() const;
};
SummedArea summed_area(const TimelinePicture& picture);
AreaSums sums_of(const TimelineIndex& index, const SummedArea& area);

}  // namespace tessera::gui
