// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/trace/trace_events.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cost_models/documents/document.h"
#include "cost_models/documents/printed.h"
#include "cost_models/documents/problem.h"
#include "gui/document/words.h"

namespace tessera::gui {
namespace {

constexpr std::size_t kMostProblems = 20, kMostText = 512;  // bytes of a name
constexpr int kDeepest = 200;
constexpr double kMostUs = 1e18;  // of a clock

/// The parts of an event that count.
struct Fields {
  char kind = 0;  // its ph, of one letter
  std::optional<double> start_us, length_us, sort_index;
  std::string name, category, given_name, process, thread;
  bool bad_time = false;
};

/// Takes nlohmann's SAX events; returns false from an event to stop.
class EventReader {
 public:
  using json = nlohmann::json;

  EventReader(std::string_view text, const std::string& file, std::size_t most_spans,
              std::size_t most_tracks, TraceEvents& events, Problems& problems)
      : text_(text),
        file_(file),
        most_spans_(most_spans),
        most_tracks_(most_tracks),
        events_(events),
        problems_(problems) {}

  bool null() { return scalar(); }
  bool boolean(bool) { return scalar(); }
  bool number_integer(std::int64_t value) { return number(static_cast<double>(value)); }
  bool number_unsigned(std::uint64_t value) { return number(static_cast<double>(value)); }
  bool number_float(double value, const std::string&) { return number(value); }
  bool binary(json::binary_t&) { return false; }
  bool string(std::string& value);
  bool start_object(std::size_t);
  bool end_object();
  bool start_array(std::size_t);
  bool end_array();
  bool key(std::string& value);
  bool parse_error(std::size_t position, const std::string& token, const json::exception& error);

  /// What is still open ends with the trace.
  void finish();

 private:
  bool inEvent() const { return event_depth_ > 0 && depth_ == event_depth_; }
  bool inArgs() const { return event_depth_ > 0 && in_args_ && depth_ == event_depth_ + 1; }
  bool amongEvents() const { return events_depth_ > 0 && depth_ == events_depth_; }
  bool number(double value);
  bool scalar() { return !amongEvents() || refuse(QT_TRANSLATE_NOOP("Words", "no event")); }
  bool refuse(const char* found,
              const char* expected = QT_TRANSLATE_NOOP("Words",
                                                       "an event, as {\"ph\": \"X\", ...}"));
  bool take();
  bool span(double start_us, double end_us, std::uint32_t track);
  bool end(double end_us, std::uint32_t track);
  void name(bool process);
  std::uint32_t textAt(std::string text);
  std::uint32_t processAt();
  std::optional<std::uint32_t> trackAt();

  std::string_view text_;
  const std::string& file_;
  std::size_t most_spans_, most_tracks_;
  TraceEvents& events_;
  Problems& problems_;
  int depth_ = 0, events_depth_ = 0, event_depth_ = 0;
  bool array_ = false;  // the root is the list of events
  bool in_args_ = false, found_ = false;
  std::string key_;
  std::int64_t event_ = 0;  // its number
  Fields fields_;
  std::unordered_map<std::string, std::uint32_t> texts_, processes_, tracks_;
  std::vector<std::vector<std::size_t>> open_;  // begun spans, by track
  double last_us_ = -std::numeric_limits<double>::infinity();
};

bool EventReader::refuse(const char* found, const char* expected) {
  const std::string place = (array_ ? "/" : "/traceEvents/") + std::to_string(event_);
  problems_.push_back({file_, place, found, expected, ""});
  return problems_.size() < kMostProblems;
}

bool EventReader::number(double value) {
  if (amongEvents()) return scalar();
  if (inEvent()) {
    const bool id = key_ == "pid" || key_ == "tid";
    if (id) {
      (key_ == "pid" ? fields_.process : fields_.thread) = printed("%.0f", value);
    } else if (key_ == "ts") {
      fields_.start_us = value;
    } else if (key_ == "dur") {
      fields_.length_us = value;
    }
  } else if (inArgs() && key_ == "sort_index") {
    fields_.sort_index = value;
  }
  return true;
}

bool EventReader::string(std::string& value) {
  if (amongEvents()) return scalar();
  if (value.size() > kMostText) value.resize(kMostText);
  if (inArgs()) {
    if (key_ == "name") fields_.given_name = std::move(value);
    return true;
  }
  if (!inEvent()) return true;
  if (key_ == "ph") {
    fields_.kind = value.size() == 1 ? value.front() : '?';
  } else if (key_ == "name") {
    fields_.name = std::move(value);
  } else if (key_ == "cat") {
    fields_.category = std::move(value);
  } else if (key_ == "pid") {
    fields_.process = std::move(value);
  } else if (key_ == "tid") {
    fields_.thread = std::move(value);
  } else if (key_ == "ts" || key_ == "dur") {
    fields_.bad_time = true;
  }
  return true;
}

bool EventReader::start_object(std::size_t) {
  const bool event = amongEvents();
  const bool args = inEvent() && key_ == "args";
  ++depth_;
  if (event) {
    event_depth_ = depth_;
    fields_ = {};
  }
  if (args) in_args_ = true;
  return depth_ <= kDeepest || refuse(QT_TRANSLATE_NOOP("Words", "too many values within values"));
}

bool EventReader::end_object() {
  const bool event = inEvent();
  if (inArgs()) in_args_ = false;
  --depth_;
  if (!event) return true;
  event_depth_ = 0;
  const bool goes_on = take();
  ++event_;
  return goes_on;
}

bool EventReader::start_array(std::size_t) {
  const bool root = depth_ == 0;
  const bool named = depth_ == 1 && !array_ && key_ == "traceEvents";
  if (amongEvents() && !scalar()) return false;
  ++depth_;
  if (root || named) {
    array_ = root;
    events_depth_ = depth_;
    found_ = true;
  }
  return depth_ <= kDeepest || refuse(QT_TRANSLATE_NOOP("Words", "too many values within values"));
}

bool EventReader::end_array() {
  if (amongEvents()) events_depth_ = 0;
  --depth_;
  return true;
}

bool EventReader::key(std::string& value) {
  if (depth_ == 1 || inEvent() || inArgs()) key_ = std::move(value);
  return true;
}

// The list may lack its end: a program that died did not write it.
bool EventReader::parse_error(std::size_t position, const std::string& token,
                              const json::exception& error) {
  const std::size_t offset = position > 0 ? position - 1 : 0;
  const bool ended = offset >= text_.size();
  if (ended && array_ && amongEvents() && event_ > 0) return false;
  const std::string_view all = error.what();  // "...: syntax error ... - REASON; last read: ..."
  const std::string_view said = all.substr(0, all.find(';'));
  const std::size_t cut = said.rfind(": ");
  problems_.push_back(
      {file_, line_column(text_, std::min(offset, text_.size())),
       ended ? QT_TRANSLATE_NOOP("Words", "the end of the text") : "'" + token.substr(0, 60) + "'",
       "JSON", std::string(cut == std::string_view::npos ? said : said.substr(cut + 2))});
  return false;
}

std::uint32_t EventReader::textAt(std::string text) {
  const auto [at, fresh] =
      texts_.try_emplace(std::move(text), static_cast<std::uint32_t>(events_.texts.size()));
  if (fresh) events_.texts.push_back(at->first);
  return at->second;
}

std::uint32_t EventReader::processAt() {
  const auto [at, fresh] =
      processes_.try_emplace(fields_.process, static_cast<std::uint32_t>(events_.processes.size()));
  if (fresh) events_.processes.push_back({.id = fields_.process});
  return at->second;
}

std::optional<std::uint32_t> EventReader::trackAt() {
  const std::uint32_t process = processAt();
  const auto [at, fresh] = tracks_.try_emplace(std::to_string(process) + " " + fields_.thread,
                                               static_cast<std::uint32_t>(events_.tracks.size()));
  if (fresh) {
    events_.tracks.push_back({.id = fields_.thread, .above = process});
    open_.emplace_back();
  }
  return events_.tracks.size() > most_tracks_ ? std::nullopt : std::optional(at->second);
}

void EventReader::name(bool process) {
  if (!process && !trackAt()) return;
  TraceLine& line = process ? events_.processes[processAt()] : events_.tracks[*trackAt()];
  if (fields_.name.ends_with("_name")) line.name = fields_.given_name;
  if (fields_.name.ends_with("_sort_index")) line.order = fields_.sort_index.value_or(line.order);
}

bool EventReader::span(double start_us, double end_us, std::uint32_t track) {
  if (events_.spans.size() >= most_spans_) {
    refuse(QT_TRANSLATE_NOOP("Words", "more spans than the window shows"),
           QT_TRANSLATE_NOOP("Words", "a part of the trace: at most 10,000,000 spans"));
    return false;
  }
  last_us_ = std::max(last_us_, end_us);
  events_.spans.push_back({start_us, end_us, textAt(std::move(fields_.name)),
                           textAt(std::move(fields_.category)), track});
  return true;
}

bool EventReader::end(double end_us, std::uint32_t track) {
  std::vector<std::size_t>& open = open_[track];
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

// Of an event that is whole.
bool EventReader::take() {
  const char kind = fields_.kind;
  if (kind == 0) return refuse(QT_TRANSLATE_NOOP("Words", "no ph"));
  if (kind == 'M') {
    const bool process = fields_.name.starts_with("process_");
    if (process || fields_.name.starts_with("thread_")) name(process);
    return true;
  }
  if (kind != 'X' && kind != 'B' && kind != 'E') {
    ++events_.left_out;
    return true;
  }
  const bool times = fields_.start_us && !fields_.bad_time &&
                     std::abs(*fields_.start_us) < kMostUs &&
                     std::abs(fields_.length_us.value_or(0)) < kMostUs;
  if (!times) {
    return refuse(QT_TRANSLATE_NOOP("Words", "no ts that is a time"),
                  QT_TRANSLATE_NOOP("Words", "ts and dur as numbers of microseconds"));
  }
  const double length = fields_.length_us.value_or(0);
  if (length < 0) {
    return refuse(QT_TRANSLATE_NOOP("Words", "a negative dur"),
                  QT_TRANSLATE_NOOP("Words", "ts and dur as numbers of microseconds"));
  }
  const auto track = trackAt();
  if (!track) {
    refuse(QT_TRANSLATE_NOOP("Words", "more threads than the window shows"),
           QT_TRANSLATE_NOOP("Words", "a part of the trace: at most 20,000 threads"));
    return false;
  }
  const double start = *fields_.start_us;
  if (kind == 'E') return end(start, *track);
  if (kind == 'B') open_[*track].push_back(events_.spans.size());
  return span(start, start + (kind == 'X' ? length : 0), *track);
}

void EventReader::finish() {
  for (const std::vector<std::size_t>& open : open_) {
    for (const std::size_t at : open) events_.spans[at].end_us = last_us_;
  }
  if (!problems_.empty()) return;
  if (!found_) {
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

}  // namespace

bool read_events(std::string_view text, const std::string& file, std::size_t most_spans,
                 std::size_t most_tracks, TraceEvents& events, Problems& problems) {
  Problems own;
  EventReader reader(text, file, most_spans, most_tracks, events, own);
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  reader.finish();
  problems.insert(problems.end(), own.begin(), own.end());
  return own.empty();
}

}  // namespace tessera::gui
