// SPDX-License-Identifier: GPL-3.0-or-later
// A Chrome trace as a timeline: what `tessera simulate --trace` and runs write, and other programs
// (PyTorch's profiler, Perfetto's converter, Chrome).
//
// A file in the JSON array or JSON object format of the Trace Event Format, read in one pass. Spans
// are complete events (X) and begun and ended ones (B, E); names of processes and threads, and
// their order, are those of the metadata (M); events of other kinds are counted and left out. Spans
// within others stand on a track of their own below. Files of a stranger: what is wrong is a
// Problem with its place, and at most kMostSpans spans of kMostBytes bytes are read. Pure; any
// thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "cost_models/documents/problem_list.h"
#include "gui/timeline/timeline_index.h"
#include "gui/trace/trace_events.h"

namespace tessera::gui {

/// nullopt where anything was appended to `problems`, as where no span is in it, and where
/// `part_read` said that nobody waits.
std::optional<TimelineIndex> read_trace(const std::filesystem::path& file, Problems& problems,
                                        const PartRead& part_read = everything_is_wanted,
                                        const TraceLimits& limits = {});
/// The same of a text; `file`: as messages name it.
std::optional<TimelineIndex> trace_in(std::string_view text, const std::string& file,
                                      Problems& problems, const TraceLimits& limits = {},
                                      const PartRead& part_read = everything_is_wanted);

/// Every span in a row: process, track, depth, name, category, start and end in nanoseconds. CSV.
void give_trace_csv(const TimelineIndex& index, const TakePart& take);

}  // namespace tessera::gui
