// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/step_views/timeline_area.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace tessera::gui {

SummedArea summed_area(const TimelinePicture& picture) {
  if (picture.index == nullptr) return {};
  const int last = static_cast<int>(picture.rows.size()) - 1;
  const auto& area = picture.area;
  const auto [first_row, last_row] =
      area ? std::pair(area->first_row, std::min(area->last_row, last)) : std::pair(0, last);
  SummedArea summed{.to_ns = picture.index->end_ns};
  if (area) std::tie(summed.from_ns, summed.to_ns) = std::pair(area->from_ns, area->to_ns);
  for (int row = first_row; row <= last_row; ++row) {
    summed.lanes.push_back(picture.rows[static_cast<std::size_t>(row)].lane);
  }
  return summed;
}

std::size_t SummedArea::spans() const {
  std::size_t spans = 0;
  for (const Lane& lane : lanes) spans += lane.last - lane.first;
  return spans;
}

AreaSums sums_of(const TimelineIndex& index, const SummedArea& area) {
  std::set<int> ranks;
  for (const Lane& lane : area.lanes) ranks.insert(lane.rank);
  return {totals_of(index, area.lanes, area.from_ns, area.to_ns),
          idle_of(index, area.lanes, area.from_ns, area.to_ns),
          (area.to_ns - area.from_ns) * static_cast<std::int64_t>(ranks.size())};
}

}  // namespace tessera::gui
