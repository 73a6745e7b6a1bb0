// SPDX-License-Identifier: GPL-3.0-or-later
// The events of a trace read in pieces of its text by several threads.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cost_models/documents/problem.h"
#include "gui/trace/trace_events.h"

namespace tessera::gui {

/// What is wrong with single events; empty = nothing. nullopt: the text is not read so (it is
/// broken or cannot be cut, or nobody waits), and `events` mean nothing.
std::optional<Problems> read_pieces(std::string_view text, const std::string& file,
                                    const TraceLimits& limits, const PartRead& part_read,
                                    TraceEvents& events);

}  // namespace tessera::gui
