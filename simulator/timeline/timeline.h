// Spans of time by rank and stream, as the simulator predicts or a run measures them.
//
// Integer nanoseconds from the start of the timeline. A plain value; spans are sorted by (rank,
// stream, start, id). One writer turns predicted and measured timelines into one Perfetto-loadable
// trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/memory.h"
#include "cost_models/spec/workload.h"

namespace tessera {

enum class Stream : std::uint8_t { phases, compute, communication, copy };
std::string_view name_of(Stream stream);

struct Span {
  std::int64_t start_ns = 0, end_ns = 0;
  int rank = 0;
  Stream stream = Stream::compute;
  Phase phase = Phase::gen;
  int step = 0;
  int task = -1;           // of the simulation (Simulation::tasks); -1: measured
  std::string name;        // the phase's name on the phases stream; else the task
  std::int64_t bytes = 0;  // moved, for communication and copies
  /// How much later a predicted task could have ended without delaying the end of all; 0 on the
  /// phases stream and of what was measured.
  std::int64_t slack_ns = 0;
  bool operator==(const Span&) const = default;
};

/// Memory in use on one rank from `time_ns` on.
struct MemorySample {
  std::int64_t time_ns = 0;
  int rank = 0;
  MemoryUse use;
  bool operator==(const MemorySample&) const = default;
};

/// A value over equal windows of time that follow one another from 0 on, of no rank: the load of a
/// link.
struct Counter {
  std::string name, unit;
  std::int64_t window_ns = 0;
  std::vector<double> values;

  /// Windows whose value is not the one before (0 before the first and behind the last).
  std::vector<std::size_t> changes() const;
};

struct Timeline {
  std::string source;  // "predicted" or "measured"
  std::vector<Span> spans;
  std::vector<MemorySample> memory;
  bool operator==(const Timeline&) const = default;
};

/// Sorts spans and samples into the order stated above.
void sort(Timeline& timeline);

/// Chrome trace JSON: pid = rank (measured ranks follow predicted ones under their own process
/// names), tid = stream, X events nested within a tid, memory as counters. Of a timeline with more
/// than `most_events` spans and samples (0 = any number) neighbouring short ones share an event
/// (trace_slices.h), whose arguments say how many they are and how long they take together.
/// `counters` of the first timeline stand under a process of their own, behind its ranks.
std::string to_chrome_trace(const std::vector<const Timeline*>& timelines,
                            std::size_t most_events = 0, const std::vector<Counter>& counters = {});

}  // namespace tessera
