// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/trace/trace_pieces.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "gui/trace/event_log.h"
#include "gui/trace/piece_events.h"
#include "gui/trace/trace_text.h"

namespace tessera::gui {
namespace {

constexpr std::size_t kMostThreads = 8;
constexpr std::size_t kLeastEvent = 24;  // bytes of a span with a comma, at least
constexpr std::uint32_t kUnknown = ~std::uint32_t{0};

/// A piece's numbers in those of the whole trace, each asked for when an event first has it: the
/// order of all is that of the text.
class PieceInLog {
 public:
  PieceInLog(const PieceEvents& piece, EventLog& log)
      : piece_(piece),
        log_(log),
        texts_(piece.texts.size(), kUnknown),
        processes_(piece.processes.size(), kUnknown),
        tracks_(piece.tracks.size(), kUnknown) {}

  bool take(RawEvent event) {
    if (has_track(event.kind)) event.track = track(event.track);
    if (is_span(event.kind)) {
      event.name = text(event.name);
      event.category = text(event.category);
    }
    if (event.kind == 'M' && event.name != kNoNaming) name(piece_.namings[event.name]);
    return log_.take(event);
  }

 private:
  std::uint32_t text(std::uint32_t own) {
    if (texts_[own] == kUnknown) texts_[own] = log_.text(piece_.texts[own]);
    return texts_[own];
  }
  std::uint32_t process(std::uint32_t own) {
    if (processes_[own] == kUnknown) processes_[own] = log_.process(piece_.processes[own]);
    return processes_[own];
  }
  std::uint32_t track(std::uint32_t own) {
    const PieceEvents::Track& of = piece_.tracks[own];
    if (tracks_[own] == kUnknown) tracks_[own] = log_.track(process(of.process), of.id);
    return tracks_[own];
  }
  void name(const PieceEvents::Naming& own) {
    const TraceNaming naming{own.of, own.name, own.sort_index};
    if (naming.of_process()) {
      log_.name_process(process(own.line), naming);
    } else {
      log_.name_track(track(own.line), naming);
    }
  }

  const PieceEvents& piece_;
  EventLog& log_;
  std::vector<std::uint32_t> texts_, processes_, tracks_;
};

/// Parses pieces in any order and hands them to the log in that of the text.
class PieceReader {
 public:
  PieceReader(std::string_view text, const std::vector<EventList>& pieces,
              const PartRead& part_read, EventLog& log)
      : text_(text), pieces_(pieces), part_read_(part_read), log_(log), read_(pieces.size()) {}

  /// False where a piece cannot be read, or nobody waits.
  bool read() {
    const std::size_t threads =
        std::min({pieces_.size(), kMostThreads,
                  std::max<std::size_t>(1, std::thread::hardware_concurrency())});
    std::vector<std::future<void>> others;
    for (std::size_t i = 1; i < threads; ++i) {
      others.push_back(std::async(std::launch::async, [this] { work(); }));
    }
    work();
    for (std::future<void>& other : others) other.get();
    return !failed_;
  }

 private:
  void work() {
    PieceParser parser;
    while (!failed_ && !enough_) {
      const std::size_t mine = next_++;
      if (mine >= pieces_.size()) return;
      const EventList& at = pieces_[mine];
      const std::string_view part = text_.substr(at.begin, at.end - at.begin);
      auto events = parser.parse(part);
      if (!events || !part_read_(part)) {
        failed_ = true;
        return;
      }
      const std::scoped_lock lock(handing_over_);
      read_[mine] = std::move(events);
      while (handed_ < read_.size() && read_[handed_]) hand_over();
    }
  }

  void hand_over() {
    PieceInLog piece(*read_[handed_], log_);
    for (const RawEvent& event : read_[handed_]->events) {
      if (enough_) break;
      if (!piece.take(event)) enough_ = true;
    }
    read_[handed_].reset();
    ++handed_;
  }

  std::string_view text_;
  const std::vector<EventList>& pieces_;
  const PartRead& part_read_;
  EventLog& log_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> failed_ = false, enough_ = false;  // enough: was said of what is wrong
  std::mutex handing_over_;                            // of what follows, and of the log
  std::vector<std::optional<PieceEvents>> read_;
  std::size_t handed_ = 0;
};

// What stands around the list is a whole document whose list of events is this one, and empty.
bool is_around(std::string_view before, std::string_view after) {
  const std::string around = std::string(before) + std::string(is_missing_end(after) ? "]" : after);
  TraceEvents none;
  Problems problems;
  read_events_in_order(around, "", {}, everything_is_wanted, none, problems);
  return problems.size() == 1 && problems.front().found == std::string("no span") &&
         none.left_out == 0;
}

}  // namespace

std::optional<Problems> read_pieces(std::string_view text, const std::string& file,
                                    const TraceLimits& limits, const PartRead& part_read,
                                    TraceEvents& events) {
  const auto begin = list_begin(text);
  if (!begin) return std::nullopt;
  const std::vector<EventList> pieces = pieces_of(text, *begin, limits.piece);
  if (pieces.empty()) return std::nullopt;
  const std::string_view before = text.substr(0, *begin), after = text.substr(pieces.back().end);
  if (!is_around(before, after)) return std::nullopt;
  events.spans.reserve(std::min(limits.spans, text.size() / kLeastEvent));
  Problems problems;
  EventLog log(file, limits, events, problems);
  log.setRootIsList(text.find_first_not_of(" \t\r\n") == *begin - 1);
  if (!PieceReader(text, pieces, part_read, log).read()) return std::nullopt;
  log.finish(true);
  return problems;
}

}  // namespace tessera::gui
