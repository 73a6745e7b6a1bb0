// SPDX-License-Identifier: GPL-3.0-or-later
// The events of a Chrome trace as they stand in its text.
//
// A text is read in pieces, side by side (trace_pieces.h); one that is broken, and what that reader
// does not know, is read from its beginning to the fault, which is told with its place. Both give
// the same. Times are microseconds of the trace's own clock. Plain values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
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

struct TraceLimits {
  std::size_t bytes = std::size_t{2} << 30, spans = 10'000'000, tracks = 20'000;
  std::size_t piece = std::size_t{1} << 20;  // bytes that are read at once
};

/// Is told of each part of the text that has been read, in any order and from any thread; empty
/// parts in between. False = nobody waits for the rest.
using PartRead = std::function<bool(std::string_view part)>;
inline bool everything_is_wanted(std::string_view /*part*/) { return true; }

/// False where anything was appended to `problems`, or `part_read` said so.
bool read_events(std::string_view text, const std::string& file, const TraceLimits& limits,
                 const PartRead& part_read, TraceEvents& events, Problems& problems);

/// The same by one reader from the beginning to the end.
bool read_events_in_order(std::string_view text, const std::string& file, const TraceLimits& limits,
                          const PartRead& part_read, TraceEvents& events, Problems& problems);

}  // namespace tessera::gui
