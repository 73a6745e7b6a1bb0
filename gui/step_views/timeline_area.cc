// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/step_views/timeline_area.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tessera::gui {

AreaSums sums_of(const TimelinePicture& picture) {
  if (picture.index == nullptr) return {};
  const TimelineIndex& index = *picture.index;
  const int last = static_cast<int>(picture.rows.size()) - 1;
  const auto& area = picture.area;
  const auto [first_row, last_row] =
      area ? std::pair(area->first_row, std::min(area->last_row, last)) : std::pair(0, last);
  const auto [from, to] = area ? std::pair(area->from_ns, area->to_ns)
                               : std::pair<std::int64_t, std::int64_t>(0, index.end_ns);
  std::vector<Lane> lanes;
  std::set<int> ranks;
  for (int row = first_row; row <= last_row; ++row) {
    lanes.push_back(picture.rows[static_cast<std::size_t>(row)].lane);
    ranks.insert(lanes.back().rank);
  }
  return {totals_of(index, lanes, from, to), idle_of(index, lanes, from, to),
          (to - from) * static_cast<std::int64_t>(ranks.size())};
}

}  // namespace tessera::gui
