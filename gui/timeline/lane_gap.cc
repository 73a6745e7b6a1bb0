// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/lane_gap.h"

#include <algorithm>
#include <queue>
#include <vector>

namespace tessera::gui {
namespace {

// The first span of the lane that ends behind `ns`; spans of a lane never overlap.
std::size_t first_ending_behind(const TimelineIndex& index, const Lane& lane, std::int64_t ns) {
  std::size_t first = lane.first, last = lane.last;
  while (first < last) {
    const std::size_t middle = first + (last - first) / 2;
    if (index.end_ns_of(middle) <= ns) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first;
}

/// The lanes of one rank gone through together, from span to span by their starts.
class RankTime {
 public:
  RankTime(const TimelineIndex& index, std::int64_t from_ns, std::int64_t to_ns)
      : index_(index), from_(from_ns), to_(to_ns) {}

  void add(const Lane& lane) { push({first_ending_behind(index_, lane, from_), lane.last}); }

  IdleTotal idle() {
    IdleTotal idle;
    std::int64_t covered = from_;
    while (const auto span = take()) {
      if (index_.start_ns(*span) >= to_) break;
      add_gap(idle, covered, index_.start_ns(*span));
      covered = std::max(covered, index_.end_ns_of(*span));
    }
    add_gap(idle, covered, to_);
    return idle;
  }

 private:
  static void add_gap(IdleTotal& idle, std::int64_t from, std::int64_t to) {
    if (to <= from) return;
    ++idle.gaps;
    idle.ns += to - from;
  }

  struct Rest {  // of a lane: [next, last)
    std::size_t next, last;
  };
  struct Later {
    const TimelineIndex* index;
    bool operator()(const Rest& a, const Rest& b) const {
      return index->start_ns(a.next) > index->start_ns(b.next);
    }
  };

  void push(Rest rest) {
    if (rest.next < rest.last) lanes_.push(rest);
  }
  std::optional<std::size_t> take() {
    if (lanes_.empty()) return std::nullopt;
    const Rest earliest = lanes_.top();
    lanes_.pop();
    push({earliest.next + 1, earliest.last});
    return earliest.next;
  }

  const TimelineIndex& index_;
  std::int64_t from_, to_;
  std::priority_queue<Rest, std::vector<Rest>, Later> lanes_{Later{&index_}};
};

}  // namespace

std::optional<LaneGap> gap_at(const TimelineIndex& index, const Lane& lane, double time_ns) {
  if (time_ns < 0 || time_ns >= static_cast<double>(index.end_ns)) return std::nullopt;
  const auto at = static_cast<std::int64_t>(time_ns);
  const std::size_t next = first_ending_behind(index, lane, at);
  if (next < lane.last && index.start_ns(next) <= at) return std::nullopt;
  return LaneGap{lane, next == lane.first ? 0 : index.end_ns_of(next - 1),
                 next == lane.last ? index.end_ns : index.start_ns(next), next};
}

std::vector<std::size_t> awaited_in(const TimelineIndex& index, const LaneGap& gap) {
  std::vector<std::size_t> chain;
  if (gap.next == gap.lane.last) return chain;
  for (auto span = awaited_by(index, gap.next); span; span = awaited_by(index, *span)) {
    chain.push_back(*span);
    if (index.start_ns(*span) <= gap.from_ns) break;
  }
  return chain;
}

std::vector<std::size_t> meanwhile(const TimelineIndex& index, const LaneGap& gap) {
  std::vector<std::size_t> spans;
  for (const Lane& lane : lanes_of(index, gap.lane.rank)) {
    if (lane.stream == Stream::phases || lane.stream == gap.lane.stream) continue;
    for (std::size_t i = first_ending_behind(index, lane, gap.from_ns);
         i < lane.last && index.start_ns(i) < gap.to_ns; ++i) {
      spans.push_back(i);
    }
  }
  return spans;
}

std::vector<int> ranks_of_task(const TimelineIndex& index, std::size_t span) {
  const Span of = index.span(span);
  if (of.task < 0) return {of.rank};
  std::vector<int> ranks;
  for (const Lane& lane : index.lanes) {
    if (lane.stream != of.stream) continue;
    const std::size_t at = first_ending_behind(index, lane, of.start_ns);
    if (at < lane.last && index.simulation.timeline.spans[at].task == of.task)
      ranks.push_back(lane.rank);
  }
  return ranks;
}

IdleTotal idle_of(const TimelineIndex& index, std::span<const Lane> lanes, std::int64_t from_ns,
                  std::int64_t to_ns) {
  const bool tasks = std::any_of(lanes.begin(), lanes.end(),
                                 [](const Lane& lane) { return lane.stream != Stream::phases; });
  IdleTotal idle;
  for (std::size_t first = 0; first < lanes.size();) {
    RankTime rank(index, from_ns, to_ns);
    std::size_t last = first;
    for (; last < lanes.size() && lanes[last].rank == lanes[first].rank; ++last) {
      if (!tasks || lanes[last].stream != Stream::phases) rank.add(lanes[last]);
    }
    const IdleTotal own = rank.idle();
    idle.gaps += own.gaps;
    idle.ns += own.ns;
    first = last;
  }
  return idle;
}

}  // namespace tessera::gui
