// SPDX-License-Identifier: GPL-3.0-or-later
// The events of a Chrome trace as they stand in its text: one pass, no tree.
//
// Times are microseconds of the trace's own clock. Plain values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cost_models/documents/problem_list.h"

namespace tessera::gui {

struct TraceEvent {
  double start_us = 0, end_us = 0;
  std::uint32_t name = 0, category = 0, track = 0;  // places in TraceEvents
};

/// A process, or a thread of one.
struct TraceLine {
  std::string id;           // as the trace has it: "17"
  std::string name;         // empty = it has none
  double order = 0;         // its sort_index; equal ones by their first event
  std::uint32_t above = 0;  // of a thread: its process
};

struct TraceEvents {
  std::vector<TraceEvent> spans;   // in the file's order
  std::vector<std::string> texts;  // names and categories, each once
  std::vector<TraceLine> processes, tracks;
  std::int64_t left_out = 0;  // events of other kinds, ends without a beginning
};

/// False where anything was appended to `problems`.
bool read_events(std::string_view text, const std::string& file, std::size_t most_spans,
                 std::size_t most_tracks, TraceEvents& events, Problems& problems);

}  // namespace tessera::gui
