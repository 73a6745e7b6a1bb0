// SPDX-License-Identifier: GPL-3.0-or-later
#include <optional>
#include <string>

#include "cost_models/documents/csv.h"
#include "gui/timeline/timeline_index.h"
#include "simulator/engine/report.h"

namespace tessera::gui {

// Line by line: a table of all spans would take ten times as much memory as its text.
std::string csv_of(const TimelineIndex& index) {
  std::string out;
  append_row(out,
             {"rank", "stream", "phase", "step", "name", "start_ns", "end_ns", "bytes", "slack_ns",
              "on_critical_path", "communication_ns", "waits_for", "waits_for_rank"});
  for (std::size_t i = 0; i < index.name_of.size(); ++i) {
    const Span& span = index.simulation.timeline.spans[i];
    const std::optional<std::size_t> awaited = awaited_by(index, i);
    append_row(out, {std::to_string(span.rank), std::string(name_of(span.stream)),
                     std::string(name_of(span.phase)), std::to_string(span.step), span.name,
                     std::to_string(span.start_ns), std::to_string(span.end_ns),
                     std::to_string(span.bytes), std::to_string(span.slack_ns),
                     index.on_critical_path(i) ? "true" : "false",
                     std::to_string(communication_ns(index, i)),
                     awaited ? index.names[index.name_of[*awaited]] : "",
                     awaited ? std::to_string(index.span(*awaited).rank) : ""});
  }
  return out;
}

std::string trace_of(const TimelineIndex& index) {
  constexpr std::size_t kMostEvents = 400'000;  // as the command line has it
  return to_chrome_trace(index.simulation, kMostEvents);
}

}  // namespace tessera::gui
