// SPDX-License-Identifier: GPL-3.0-or-later
// Takes the events of a trace in the order of its text: pairs beginnings with their ends, numbers
// texts, processes and threads, and says what is wrong with an event.
//
// Whoever reads the text makes the Events. One thread; it writes into the caller's values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gui/trace/trace_events.h"

namespace tessera::gui {

constexpr std::size_t kMostTraceText = 512;  // bytes of a name
constexpr int kDeepestTrace = 200;           // values within values

/// An event as its text has it.
struct RawEvent {
  double start_us = 0, length_us = 0;
  std::uint32_t name = 0, category = 0, track = 0;  // EventLog's; of X and B, track of E too
  char kind = 0;                                    // its ph; '?' = of several letters
  bool has_start = false, bad_time = false;         // bad: ts or dur is no number
};
inline bool has_track(char kind) { return kind == 'X' || kind == 'B' || kind == 'E'; }
inline bool is_span(char kind) { return kind == 'X' || kind == 'B'; }

/// What metadata (M) says of a process or a thread.
struct TraceNaming {
  std::string_view of;  // the event's name: "thread_name"
  std::string_view name;
  std::optional<double> sort_index;

  bool of_process() const { return of.starts_with("process_"); }
  bool of_thread() const { return of.starts_with("thread_"); }
};

/// The key of a process or thread of a number, as "%.0f".
std::string trace_id(double number);

/// Texts and their places, by first appearance.
class TextPlaces {
 public:
  /// The place, and whether the text is new.
  std::pair<std::uint32_t, bool> at(std::string_view text);

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> places_;
};

class EventLog {
 public:
  /// `events` and `problems` are filled.
  EventLog(const std::string& file, const TraceLimits& limits, TraceEvents& events,
           Problems& problems)
      : file_(file), limits_(limits), events_(events), problems_(problems) {}

  std::uint32_t text(std::string_view text);
  std::uint32_t process(std::string_view id);
  std::uint32_t track(std::uint32_t process, std::string_view id);
  void name_process(std::uint32_t process, const TraceNaming& naming);
  void name_track(std::uint32_t track, const TraceNaming& naming);

  /// False where nothing behind it is to be read.
  bool take(const RawEvent& event);
  /// Says what is wrong with the event that comes; false = enough was said.
  bool refuse(const char* found, const char* expected);
  bool refuse_no_event();
  /// What is still open ends with the trace. `found`: the list of events.
  void finish(bool found);

  std::int64_t taken() const { return taken_; }
  /// The root of the text is the list of events.
  void setRootIsList(bool is) { root_is_list_ = is; }

 private:
  bool judge(const RawEvent& event);
  bool span(double start_us, double end_us, const RawEvent& event);
  bool end(double end_us, std::uint32_t track);

  const std::string& file_;
  const TraceLimits& limits_;
  TraceEvents& events_;
  Problems& problems_;
  bool root_is_list_ = false;
  std::int64_t taken_ = 0;
  TextPlaces texts_, processes_, tracks_;
  std::vector<std::vector<std::uint32_t>> open_;  // begun spans, by track
  double last_us_ = -std::numeric_limits<double>::infinity();
};

}  // namespace tessera::gui
