// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/timeline_index.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "cost_models/documents/printed.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/stopped.h"
#include "planner/plan/plan.h"

namespace tessera::gui {
namespace {

using Spans = std::vector<Span>;

std::vector<Lane> lanes_in(const Spans& spans) {
  std::vector<Lane> lanes;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (lanes.empty() || lanes.back().rank != spans[i].rank ||
        lanes.back().stream != spans[i].stream) {
      lanes.push_back({spans[i].rank, spans[i].stream, i, i});
    }
    lanes.back().last = i + 1;
  }
  return lanes;
}

bool equal_but_for_rank(const Span& a, const Span& b) {
  return a.start_ns == b.start_ns && a.end_ns == b.end_ns && a.stream == b.stream &&
         a.phase == b.phase && a.step == b.step && a.name == b.name && a.bytes == b.bytes &&
         a.slack_ns == b.slack_ns;
}

/// The spans of one rank, which follow one another.
struct RankSpans {
  int rank = 0;
  std::span<const Span> spans;
  std::size_t digest = 0;
};

std::vector<RankSpans> ranks_in(const Spans& spans) {
  std::vector<RankSpans> ranks;
  for (std::size_t first = 0; first < spans.size();) {
    std::size_t last = first;
    std::size_t digest = 0;
    for (; last < spans.size() && spans[last].rank == spans[first].rank; ++last) {
      const Span& one = spans[last];
      for (const std::int64_t part :
           {one.start_ns, one.end_ns, one.bytes, static_cast<std::int64_t>(one.stream)}) {
        digest = digest * 1000003 + std::hash<std::int64_t>()(part);
      }
    }
    ranks.push_back({spans[first].rank, std::span(spans).subspan(first, last - first), digest});
    first = last;
  }
  return ranks;
}

std::vector<RankGroup> groups_in(const Spans& spans) {
  struct Group {
    std::span<const Span> like;
    std::size_t at = 0;
  };
  std::unordered_multimap<std::size_t, Group> known;
  std::vector<RankGroup> groups;
  for (const RankSpans& rank : ranks_in(spans)) {
    const auto [first, last] = known.equal_range(rank.digest);
    const auto same = std::find_if(first, last, [&](const auto& group) {
      return std::equal(rank.spans.begin(), rank.spans.end(), group.second.like.begin(),
                        group.second.like.end(), equal_but_for_rank);
    });
    if (same != last) {
      groups[same->second.at].ranks.push_back(rank.rank);
      continue;
    }
    known.emplace(rank.digest, Group{rank.spans, groups.size()});
    groups.push_back({{rank.rank}});
  }
  return groups;
}

// The first span of the lane that `is_before` does not hold of; it holds of those before it.
template <class IsBefore>
std::size_t first_behind(std::size_t first, std::size_t last, const IsBefore& is_before) {
  while (first < last) {
    const std::size_t middle = first + (last - first) / 2;
    if (is_before(middle)) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first;
}

std::size_t first_ending_behind(const TimelineIndex& index, const Lane& lane, double ns) {
  return first_behind(lane.first, lane.last, [&](std::size_t span) {
    return static_cast<double>(index.end_ns_of(span)) <= ns;
  });
}

std::size_t first_starting_at(const TimelineIndex& index, const Lane& lane, double ns) {
  return first_behind(lane.first, lane.last, [&](std::size_t span) {
    return static_cast<double>(index.start_ns(span)) < ns;
  });
}

// The first span from `from` on that starts at `ns` or behind it, in steps that grow: of what is
// drawn the next pixel's is near. Never behind `last`.
std::size_t next_starting_at(const std::vector<std::int64_t>& starts, std::size_t from,
                             std::size_t last, double ns) {
  const auto before = [&](std::int64_t start) { return static_cast<double>(start) < ns; };
  std::size_t low = from, high = from;
  for (std::size_t step = 1; high < last && before(starts[high]); step *= 2) {
    low = high + 1;
    high += step;
  }
  const auto begin = starts.begin();
  const auto found =
      std::partition_point(begin + static_cast<std::ptrdiff_t>(low),
                           begin + static_cast<std::ptrdiff_t>(std::min(high, last)), before);
  return static_cast<std::size_t>(found - begin);
}

void name_spans(TimelineIndex& index) {
  std::unordered_map<std::string_view, std::uint32_t> known;
  index.name_of.reserve(index.simulation.timeline.spans.size());
  for (const Span& span : index.simulation.timeline.spans) {
    const auto [name, fresh] =
        known.emplace(span.name, static_cast<std::uint32_t>(index.names.size()));
    if (fresh) index.names.push_back(span.name);
    index.name_of.push_back(name->second);
  }
}

void mark_path(TimelineIndex& index) {
  const Spans& spans = index.simulation.timeline.spans;
  std::vector<bool> on_path(spans.size());
  for (const PathTask& task : index.simulation.critical_path) {
    for (const int rank : task.ranks) {
      for (const Lane& lane : lanes_of(index, rank)) {
        if (lane.stream == Stream::phases) continue;
        const std::size_t at = first_starting_at(index, lane, static_cast<double>(task.start_ns));
        if (at == lane.last || spans[at].start_ns != task.start_ns) continue;
        if (spans[at].end_ns == task.end_ns && spans[at].name == task.name) on_path[at] = true;
      }
    }
  }
  index.path_before.assign(1, 0);
  for (const bool on : on_path)
    index.path_before.push_back(index.path_before.back() + (on ? 1 : 0));
}

// The first span of each task, ranks in ascending order; calls on the phases stream are none.
void find_tasks(TimelineIndex& index) {
  const Spans& spans = index.simulation.timeline.spans;
  const auto none = static_cast<std::uint32_t>(spans.size());
  index.span_of_task.assign(index.simulation.tasks.size(), none);
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (spans[i].stream == Stream::phases || spans[i].task < 0) continue;
    std::uint32_t& first = index.span_of_task[static_cast<std::size_t>(spans[i].task)];
    if (first == none) first = static_cast<std::uint32_t>(i);
  }
}

PhaseLayout layout_in(const Plan& plan, const RolePlan& role) {
  const ParallelLayout& layout = role.layout;
  PhaseLayout known;
  for (const auto& [name, degree] :
       {std::pair("tp", layout.tp), std::pair("cp", layout.cp), std::pair("ep", layout.ep)}) {
    if (degree < 2) continue;
    known.within += (known.within.empty() ? "" : " ") + std::string(name) + std::to_string(degree);
  }
  if (layout.pp < 2) return known;
  known.stage_of_rank.assign(static_cast<std::size_t>(plan.world_size()), -1);
  const RankMap map = rank_map_of(plan, role.role);
  for (std::size_t i = 0; i < map.ranks.size(); ++i) {
    known.stage_of_rank[static_cast<std::size_t>(map.ranks[i])] = map.coords[i].pp;
  }
  return known;
}

// Of a span's communication what falls into a part of its time, evenly over it.
std::int64_t part_of(std::int64_t communication_ns, std::int64_t inside_ns, std::int64_t whole_ns) {
  if (communication_ns == 0) return 0;
  return std::llround(static_cast<double>(communication_ns) * static_cast<double>(inside_ns) /
                      static_cast<double>(whole_ns));
}

// "F" of "F3": as the simulator's report names tasks of the critical path.
std::string without_numbers(const std::string& name) {
  std::string stem = name.substr(0, name.find_first_of("0123456789"));
  while (!stem.empty() && stem.back() == ' ') stem.pop_back();
  return stem.empty() ? name : stem;
}

// What follows from the spans and their lanes.
void fill(TimelineIndex& index, const std::stop_token& stop) {
  const Spans& spans = index.simulation.timeline.spans;
  index.busy_before.reserve(spans.size() + 1);
  index.busy_before.push_back(0);
  index.starts.reserve(spans.size());
  for (const Span& span : spans) {
    index.starts.push_back(span.start_ns);
    index.end_ns = std::max(index.end_ns, span.end_ns);
    index.busy_before.push_back(index.busy_before.back() + span.end_ns - span.start_ns);
  }
  end_if_stopped(stop);
  name_spans(index);
  end_if_stopped(stop);
  find_tasks(index);
  end_if_stopped(stop);
  mark_path(index);
}

}  // namespace

TimelineIndex index_of(Simulation simulation, const std::stop_token& stop) {
  end_if_stopped(stop);
  TimelineIndex index{.simulation = std::move(simulation)};
  index.lanes = lanes_in(index.simulation.timeline.spans);
  end_if_stopped(stop);
  index.groups = groups_in(index.simulation.timeline.spans);
  end_if_stopped(stop);
  fill(index, stop);
  return index;
}

const Lane& lane_of(const TimelineIndex& index, std::size_t span) {
  return *std::ranges::partition_point(index.lanes,
                                       [&](const Lane& lane) { return lane.last <= span; });
}

Phase TimelineIndex::phase(std::size_t span) const {
  if (!trace) return simulation.timeline.spans[span].phase;
  // Some phase, so that equal names have one colour, and the first ones colours of their own.
  const Phase colour = kEveryPhase[name_of[span] % kEveryPhase.size()];
  return trace->phase_of_category[trace->category_of[span]].value_or(colour);
}

Span TimelineIndex::span(std::size_t index) const {
  if (!trace) return simulation.timeline.spans[index];
  const Lane& lane = lane_of(*this, index);
  return {.start_ns = start_ns(index),
          .end_ns = end_ns_of(index),
          .rank = lane.rank,
          .stream = lane.stream,
          .phase = phase(index),
          .name = names[name_of[index]]};
}

TimelineIndex simulated(const Plan& plan, const Calibration& calibration,
                        const std::stop_token& stop) {
  Problems problems;
  check_reshard_digests(plan, "the plan", problems);
  if (problems.empty()) check_duration(plan, calibration, 1, problems);
  if (!problems.empty()) throw Error(std::move(problems));
  TimelineIndex index = index_of(simulate(plan, calibration, {.stop = stop}), stop);
  for (const ScheduledCall& call : plan.schedule) {
    index.layouts[call.phase] = layout_in(plan, runner_of(plan, call));
  }
  return index;
}

std::int64_t communication_ns(const TimelineIndex& index, std::size_t span) {
  if (index.trace) return 0;
  const Span& of = index.simulation.timeline.spans[span];
  if (of.task < 0 || of.stream != Stream::compute) return 0;
  return index.simulation.tasks[static_cast<std::size_t>(of.task)].communication_ns;
}

std::optional<std::size_t> awaited_by(const TimelineIndex& index, std::size_t span) {
  if (index.trace) return std::nullopt;
  const int task = index.simulation.timeline.spans[span].task;
  if (task < 0) return std::nullopt;
  const int awaited = index.simulation.tasks[static_cast<std::size_t>(task)].awaited;
  if (awaited < 0) return std::nullopt;
  return index.span_of_task[static_cast<std::size_t>(awaited)];
}

std::span<const Lane> lanes_of(const TimelineIndex& index, int rank) {
  const auto [first, last] =
      std::ranges::equal_range(index.lanes, rank, std::ranges::less(), &Lane::rank);
  return {first, last};
}

std::vector<Slab> slabs_of(const TimelineIndex& index, const Lane& lane, const TimeAxis& axis,
                           int width) {
  std::vector<Slab> slabs;
  std::size_t at = first_ending_behind(index, lane, axis.start_ns);
  while (at < lane.last) {
    const double from = std::max(0.0, axis.x_of(static_cast<double>(index.start_ns(at))));
    const double to = axis.x_of(static_cast<double>(index.end_ns_of(at)));
    if (from >= width) break;
    const int pixel = static_cast<int>(from);
    const auto is_wide = [&](std::size_t i) {
      return static_cast<double>(index.busy_before[i + 1] - index.busy_before[i]) >=
             axis.ns_per_pixel;
    };
    if (is_wide(at)) {
      const int end = static_cast<int>(std::ceil(std::min(to, static_cast<double>(width))));
      slabs.push_back({pixel, std::max(pixel + 1, end), 1, at, at + 1});
      ++at;
      continue;
    }
    std::size_t next = next_starting_at(index.starts, at + 1, lane.last, axis.time_at(pixel + 1));
    if (next > at + 1 && is_wide(next - 1)) --next;
    const auto busy = static_cast<double>(index.busy_before[next] - index.busy_before[at]);
    slabs.push_back({pixel, pixel + 1, std::min(1.0, busy / axis.ns_per_pixel), at, next});
    at = next;
  }
  return slabs;
}

std::optional<std::size_t> span_at(const TimelineIndex& index, const Lane& lane, double time_ns,
                                   double reach_ns) {
  const std::size_t at = first_ending_behind(index, lane, time_ns - reach_ns);
  if (at == lane.last) return std::nullopt;
  if (static_cast<double>(index.start_ns(at)) > time_ns + reach_ns) return std::nullopt;
  // Of a short one and a longer one behind it that both are near, what is really there.
  const bool next_is_there = at + 1 < lane.last &&
                             static_cast<double>(index.end_ns_of(at)) <= time_ns &&
                             static_cast<double>(index.start_ns(at + 1)) <= time_ns;
  return next_is_there ? at + 1 : at;
}

std::vector<std::uint32_t> matches_before(const TimelineIndex& index, std::string_view part) {
  if (part.empty()) return {};
  const std::string wanted = lower_case(part);
  std::vector<std::uint32_t> matches;  // by name
  for (const std::string& name : index.names) {
    matches.push_back(lower_case(name).find(wanted) != std::string::npos ? 1 : 0);
  }
  std::vector<std::uint32_t> before(index.name_of.size() + 1);
  for (std::size_t i = 0; i < index.name_of.size(); ++i) {
    before[i + 1] = before[i] + matches[index.name_of[i]];
  }
  return before;
}

std::optional<std::size_t> next_match(const std::vector<std::uint32_t>& before, const Lane& lane,
                                      std::size_t from, int step) {
  if (step > 0) {
    const std::size_t found =
        first_behind(from, lane.last, [&](std::size_t i) { return before[i + 1] == before[from]; });
    return found == lane.last ? std::nullopt : std::optional(found);
  }
  const std::size_t none_left =
      first_behind(lane.first, from, [&](std::size_t i) { return before[i] < before[from]; });
  return none_left == lane.first ? std::nullopt : std::optional(none_left - 1);
}

std::vector<SpanTotal> totals_of(const TimelineIndex& index, std::span<const Lane> lanes,
                                 std::int64_t from_ns, std::int64_t to_ns) {
  const bool tasks = std::any_of(lanes.begin(), lanes.end(),
                                 [](const Lane& lane) { return lane.stream != Stream::phases; });
  using Key = std::tuple<std::uint32_t, Phase, Stream>;
  std::map<Key, SpanTotal> by_name;
  for (const Lane& lane : lanes) {
    if (tasks && lane.stream == Stream::phases) continue;
    for (std::size_t i = first_ending_behind(index, lane, static_cast<double>(from_ns));
         i < lane.last && index.start_ns(i) < to_ns; ++i) {
      SpanTotal& total = by_name[{index.name_of[i], index.phase(i), lane.stream}];
      ++total.count;
      const std::int64_t begin = index.start_ns(i), end = index.end_ns_of(i);
      const std::int64_t inside = std::min(to_ns, end) - std::max(from_ns, begin);
      total.busy_ns += inside;
      total.communication_ns += part_of(communication_ns(index, i), inside, end - begin);
    }
  }
  std::map<std::tuple<std::string, Phase, Stream>, SpanTotal> by_stem;
  for (const auto& [key, total] : by_name) {
    const auto& [name, phase, stream] = key;
    const std::string& whole = index.names[name];
    const std::string stem = index.trace ? whole : without_numbers(whole);
    SpanTotal& sum =
        by_stem.try_emplace({stem, phase, stream}, SpanTotal{stem, phase, stream, 0, 0, 0})
            .first->second;
    sum.count += total.count;
    sum.busy_ns += total.busy_ns;
    sum.communication_ns += total.communication_ns;
  }
  std::vector<SpanTotal> totals;
  for (auto& [key, total] : by_stem) totals.push_back(std::move(total));
  std::stable_sort(totals.begin(), totals.end(),
                   [](const SpanTotal& a, const SpanTotal& b) { return a.busy_ns > b.busy_ns; });
  return totals;
}

}  // namespace tessera::gui
