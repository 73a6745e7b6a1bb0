// SPDX-License-Identifier: GPL-3.0-or-later
#include <optional>
#include <string>

#include "cost_models/documents/csv.h"
#include "gui/timeline/timeline_index.h"
#include "simulator/engine/report.h"

namespace tessera::gui {

// A table of all spans would take ten times as much memory as its text, and the text a gigabyte.
void give_csv(const TimelineIndex& index, const TakePart& take) {
  constexpr std::size_t kRowsOfPart = 4096;
  std::string part;
  append_row(part,
             {"rank", "stream", "phase", "step", "name", "start_ns", "end_ns", "bytes", "slack_ns",
              "on_critical_path", "communication_ns", "waits_for", "waits_for_rank"});
  const std::size_t all = index.name_of.size();
  for (std::size_t i = 0; i < all; ++i) {
    const Span& span = index.simulation.timeline.spans[i];
    const std::optional<std::size_t> awaited = awaited_by(index, i);
    append_row(part, {std::to_string(span.rank), std::string(name_of(span.stream)),
                      std::string(name_of(span.phase)), std::to_string(span.step), span.name,
                      std::to_string(span.start_ns), std::to_string(span.end_ns),
                      std::to_string(span.bytes), std::to_string(span.slack_ns),
                      index.on_critical_path(i) ? "true" : "false",
                      std::to_string(communication_ns(index, i)),
                      awaited ? index.names[index.name_of[*awaited]] : "",
                      awaited ? std::to_string(index.span(*awaited).rank) : ""});
    if ((i + 1) % kRowsOfPart != 0) continue;
    take(part, static_cast<double>(i + 1) / static_cast<double>(all));
    part.clear();
  }
  take(part, 1);
}

std::string trace_of(const TimelineIndex& index) {
  constexpr std::size_t kMostEvents = 400'000;  // as the command line has it
  return to_chrome_trace(index.simulation, kMostEvents);
}

}  // namespace tessera::gui
