// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/trace/event_log.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cost_models/documents/printed.h"
#include "cost_models/documents/problem.h"
#include "gui/document/words.h"

namespace tessera::gui {
namespace {

constexpr std::size_t kMostProblems = 20;
constexpr double kMostUs = 1e18;  // of a clock
constexpr double kExact = 9e15;   // every integer below it is a double

}  // namespace

std::string trace_id(double number) {
  if (std::abs(number) < kExact && number == std::trunc(number) && number != 0) {
    return std::to_string(static_cast<std::int64_t>(number));
  }
  return printed("%.0f", number);
}

std::pair<std::uint32_t, bool> TextPlaces::at(std::string_view text) {
  if (const auto known = places_.find(text); known != places_.end()) return {known->second, false};
  const auto place = static_cast<std::uint32_t>(places_.size());
  places_.emplace(text, place);
  return {place, true};
}

std::uint32_t EventLog::text(std::string_view text) {
  const auto [place, fresh] = texts_.at(text);
  if (fresh) events_.texts.emplace_back(text);
  return place;
}

std::uint32_t EventLog::process(std::string_view id) {
  const auto [place, fresh] = processes_.at(id);
  if (fresh) events_.processes.push_back({.id = std::string(id)});
  return place;
}

std::uint32_t EventLog::track(std::uint32_t process, std::string_view id) {
  const auto [place, fresh] = tracks_.at(std::to_string(process) + " " + std::string(id));
  if (fresh) {
    events_.tracks.push_back({.id = std::string(id), .above = process});
    open_.emplace_back();
  }
  return place;
}

namespace {

void give(TraceLine& line, const TraceNaming& naming) {
  if (naming.of.ends_with("_name")) line.name = naming.name;
  if (naming.of.ends_with("_sort_index")) line.order = naming.sort_index.value_or(line.order);
}

}  // namespace

void EventLog::name_process(std::uint32_t process, const TraceNaming& naming) {
  give(events_.processes[process], naming);
}

void EventLog::name_track(std::uint32_t track, const TraceNaming& naming) {
  give(events_.tracks[track], naming);
}

bool EventLog::refuse(const char* found, const char* expected) {
  const std::string place = (root_is_list_ ? "/" : "/traceEvents/") + std::to_string(taken_);
  problems_.push_back({file_, place, found, expected, ""});
  return problems_.size() < kMostProblems;
}

bool EventLog::refuse_no_event() {
  return refuse(QT_TRANSLATE_NOOP("Words", "no event"),
                QT_TRANSLATE_NOOP("Words", "an event, as {\"ph\": \"X\", ...}"));
}

bool EventLog::span(double start_us, double end_us, const RawEvent& event) {
  if (events_.spans.size() >= limits_.spans) {
    refuse(QT_TRANSLATE_NOOP("Words", "more spans than the window shows"),
           QT_TRANSLATE_NOOP("Words", "a part of the trace: at most 10,000,000 spans"));
    return false;
  }
  last_us_ = std::max(last_us_, end_us);
  events_.spans.push_back({start_us, end_us, event.name, event.category, event.track});
  return true;
}

bool EventLog::end(double end_us, std::uint32_t track) {
  std::vector<std::uint32_t>& open = open_[track];
  if (open.empty()) {
    ++events_.left_out;
    return true;
  }
  TraceEvent& begun = events_.spans[open.back()];
  open.pop_back();
  last_us_ = std::max(last_us_, end_us);
  begun.end_us = end_us;
  return end_us >= begun.start_us ||
         refuse(QT_TRANSLATE_NOOP("Words", "an end before its beginning"),
                QT_TRANSLATE_NOOP("Words", "a ts that is not before that of its B"));
}

bool EventLog::judge(const RawEvent& event) {
  const char kind = event.kind;
  if (kind == 0) {
    return refuse(QT_TRANSLATE_NOOP("Words", "no ph"),
                  QT_TRANSLATE_NOOP("Words", "an event, as {\"ph\": \"X\", ...}"));
  }
  if (kind == 'M') return true;
  if (!has_track(kind)) {
    ++events_.left_out;
    return true;
  }
  const bool times = event.has_start && !event.bad_time && std::abs(event.start_us) < kMostUs &&
                     std::abs(event.length_us) < kMostUs;
  if (!times) {
    return refuse(QT_TRANSLATE_NOOP("Words", "no ts that is a time"),
                  QT_TRANSLATE_NOOP("Words", "ts and dur as numbers of microseconds"));
  }
  if (event.length_us < 0) {
    return refuse(QT_TRANSLATE_NOOP("Words", "a negative dur"),
                  QT_TRANSLATE_NOOP("Words", "ts and dur as numbers of microseconds"));
  }
  if (events_.tracks.size() > limits_.tracks) {
    refuse(QT_TRANSLATE_NOOP("Words", "more threads than the window shows"),
           QT_TRANSLATE_NOOP("Words", "a part of the trace: at most 20,000 threads"));
    return false;
  }
  if (kind == 'E') return end(event.start_us, event.track);
  const auto at = static_cast<std::uint32_t>(events_.spans.size());
  const double length_us = kind == 'X' ? event.length_us : 0;
  if (!span(event.start_us, event.start_us + length_us, event)) return false;
  if (kind == 'B') open_[event.track].push_back(at);
  return true;
}

bool EventLog::take(const RawEvent& event) {
  const bool goes_on = judge(event);
  ++taken_;
  return goes_on;
}

void EventLog::finish(bool found) {
  for (const std::vector<std::uint32_t>& open : open_) {
    for (const std::uint32_t at : open) events_.spans[at].end_us = last_us_;
  }
  if (!problems_.empty()) return;
  if (!found) {
    problems_.push_back({file_, "1:1", QT_TRANSLATE_NOOP("Words", "no traceEvents"),
                         QT_TRANSLATE_NOOP("Words",
                                           "a Chrome trace: a list of events, or an "
                                           "object with traceEvents"),
                         ""});
  } else if (events_.spans.empty()) {
    problems_.push_back({file_, "", QT_TRANSLATE_NOOP("Words", "no span"),
                         QT_TRANSLATE_NOOP("Words", "events that last: X, or B and E"), ""});
  }
}

}  // namespace tessera::gui
