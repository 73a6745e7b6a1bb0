// SPDX-License-Identifier: GPL-3.0-or-later
// A simulated timeline made ready to be drawn, searched and summed: lanes, groups of equal ranks,
// and what of a lane falls into each pixel.
//
// Everything is of the simulation that the index holds; nothing is priced or timed here. Building
// takes time in proportion to the spans, each question afterwards to the pixels or the spans asked
// about. A plain value and pure functions; nanoseconds from the timeline's start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/spec/enum_array.h"
#include "cost_models/spec/workload.h"
#include "gui/document/long_text.h"
#include "gui/timeline/time_axis.h"
#include "simulator/engine/simulate.h"

namespace tessera::gui {

/// The spans [first, last) of the timeline: those of one stream of a rank, which never overlap.
struct Lane {
  int rank = 0;
  Stream stream = Stream::phases;
  std::size_t first = 0, last = 0;
  int track = 0, depth = 0;  // of an opened trace: the thread, and the spans around these
  bool operator==(const Lane&) const = default;
};

/// Ranks whose spans are equal to the nanosecond; `ranks` ascending.
struct RankGroup {
  std::vector<int> ranks;
};

/// How the ranks of a phase's role share its layers.
struct PhaseLayout {
  std::string within;  // "tp8 cp2": the groups that exchange within layers; may be empty
  std::vector<int> stage_of_rank;  // by rank, -1 = takes no part; empty where there is one stage
};

/// What the lines and spans of an opened trace are called. Its ranks are processes.
struct TraceNames {
  std::string file;
  std::vector<std::string> processes;                   // by Span::rank
  std::vector<std::string> tracks;                      // by Lane::track
  std::vector<std::uint32_t> category_of;               // by span, of TimelineIndex::names
  std::vector<std::optional<Phase>> phase_of_category;  // by name
  bool phases = false;        // every category is a phase; else Span::phase is a colour alone
  std::int64_t left_out = 0;  // events that are no spans
};

/// An opened trace has no spans in its simulation: what is known of them stands in the columns.
struct TimelineIndex {
  Simulation simulation;
  EnumArray<Phase, PhaseLayout> layouts;  // of the plan; empty where only spans are known
  std::int64_t end_ns = 0;                // of the last span
  std::vector<Lane> lanes;                // by rank and stream
  std::vector<RankGroup> groups;          // by their first ranks
  std::vector<std::string> names;         // of spans, each once
  std::vector<std::uint32_t> name_of;     // by span
  std::vector<std::int64_t> starts;       // of the spans, side by side: what drawing looks through
  std::vector<std::int64_t> busy_before;  // nanoseconds of the spans before each, and of all
  std::vector<std::uint32_t> span_of_task;  // the first of each; that of no span where it has none
  std::optional<TraceNames> trace;          // nullopt: it is simulated
  std::vector<std::uint32_t> path_before;   // spans of the critical path likewise; empty: unknown

  std::int64_t start_ns(std::size_t span) const { return starts[span]; }
  std::int64_t end_ns_of(std::size_t span) const {
    return starts[span] + busy_before[span + 1] - busy_before[span];
  }
  /// Of a trace whose categories are no phases one that all spans of the name have.
  Phase phase(std::size_t span) const;
  /// All of it, as a copy: for those that are named, not for all.
  Span span(std::size_t index) const;
  bool on_critical_path(std::size_t index) const {
    return !path_before.empty() && path_before[index + 1] > path_before[index];
  }
};

/// Throws Stopped (cost_models/documents/stopped.h).
TimelineIndex index_of(Simulation simulation, const std::stop_token& stop = {});

/// The lane that a span lies in.
const Lane& lane_of(const TimelineIndex& index, std::size_t span);

/// What a span communicates within its layers, while it occupies the compute stream.
std::int64_t communication_ns(const TimelineIndex& index, std::size_t span);

/// What a span waited for, on the first of its ranks; nullopt = for nothing, or that is not known.
std::optional<std::size_t> awaited_by(const TimelineIndex& index, std::size_t span);

/// Of the plan's step as `tessera simulate` runs it (seed 0). Throws Error where the plan's reshard
/// contradicts its layouts, and Stopped.
TimelineIndex simulated(const Plan& plan, const Calibration& calibration,
                        const std::stop_token& stop = {});

/// The lanes of a rank, one for each stream that has spans.
std::span<const Lane> lanes_of(const TimelineIndex& index, int rank);

/// What is drawn at pixels [from, to): one span, or the spans [first, last) that share a pixel,
/// which they fill by `cover`.
struct Slab {
  int from = 0, to = 0;
  double cover = 1;
  std::size_t first = 0, last = 0;
  bool operator==(const Slab&) const = default;
};

/// From the left, at most two for each pixel of the width.
std::vector<Slab> slabs_of(const TimelineIndex& index, const Lane& lane, const TimeAxis& axis,
                           int width);

/// The span of the lane at a time, or one that is less than `reach_ns` away.
std::optional<std::size_t> span_at(const TimelineIndex& index, const Lane& lane, double time_ns,
                                   double reach_ns);

/// For each span the number of those before it whose name contains `part` (case does not matter),
/// and of all at the end. Empty where `part` is.
std::vector<std::uint32_t> matches_before(const TimelineIndex& index, std::string_view part);
/// The first such span of the lane from a place on (step 1), or the last before it (-1).
std::optional<std::size_t> next_match(const std::vector<std::uint32_t>& before, const Lane& lane,
                                      std::size_t from, int step);

/// Spans of one name without its numbers, phase and stream.
struct SpanTotal {
  std::string name;
  Phase phase = Phase::gen;
  Stream stream = Stream::compute;
  std::int64_t count = 0;
  std::int64_t busy_ns = 0;           // inside the time that was asked for
  std::int64_t communication_ns = 0;  // of it, as far as it is part of computing
  bool operator==(const SpanTotal&) const = default;
};

/// Of these lanes from `from_ns` to `to_ns`, the longest first. The phases stream is left out where
/// other lanes are among them: it covers what they do.
std::vector<SpanTotal> totals_of(const TimelineIndex& index, std::span<const Lane> lanes,
                                 std::int64_t from_ns, std::int64_t to_ns);

/// Every span in a row: rank, stream, phase, step, name, start and end in nanoseconds, bytes,
/// slack, whether it is on the critical path, what it communicates within its layers, and what it
/// waited for, with the first of that one's ranks. CSV.
void give_csv(const TimelineIndex& index, const TakePart& take);
/// For https://ui.perfetto.dev, as `tessera simulate --trace` writes it.
std::string trace_of(const TimelineIndex& index);

}  // namespace tessera::gui
