// SPDX-License-Identifier: GPL-3.0-or-later
// The time between spans: where a stream does nothing, what it waits for, and how much of an area
// it is.
//
// What a span waited for is the simulator's own (TaskNote::awaited); nothing is concluded from
// times here. Views of an index, pure functions; nanoseconds from the timeline's start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gui/timeline/timeline_index.h"

namespace tessera::gui {

/// A time in which a lane has no span, as long as it gets.
struct LaneGap {
  Lane lane;
  std::int64_t from_ns = 0, to_ns = 0;
  std::size_t next = 0;  // the span that ends it; lane.last = none does
  bool operator==(const LaneGap&) const = default;
};

/// The gap of the lane at a time; nullopt where a span is there, or the timeline is over.
std::optional<LaneGap> gap_at(const TimelineIndex& index, const Lane& lane, double time_ns);

/// What the span that ends a gap waited for, then what that waited for, and so on as far as it
/// began in the gap: the last one began before it, or waited for nothing. Empty where no span
/// ends the gap.
std::vector<std::size_t> awaited_in(const TimelineIndex& index, const LaneGap& gap);

/// Spans of the rank's other streams that share time with the gap, phases left out.
std::vector<std::size_t> meanwhile(const TimelineIndex& index, const LaneGap& gap);

/// The ranks that a span's task occupies, ascending; of a measured one its own.
std::vector<int> ranks_of_task(const TimelineIndex& index, std::size_t span);

/// Time in which none of a rank's lanes has a span, over all ranks of the lanes.
struct IdleTotal {
  std::int64_t gaps = 0, ns = 0;
  bool operator==(const IdleTotal&) const = default;
};
/// From `from_ns` to `to_ns`. The phases stream counts only where no other lanes are there, as in
/// totals_of(). Lanes of one rank follow one another.
IdleTotal idle_of(const TimelineIndex& index, std::span<const Lane> lanes, std::int64_t from_ns,
                  std::int64_t to_ns);

}  // namespace tessera::gui
