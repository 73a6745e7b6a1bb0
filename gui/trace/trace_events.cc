// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/trace/trace_events.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cost_models/documents/document.h"
#include "cost_models/documents/problem.h"
#include "gui/document/words.h"
#include "gui/trace/event_log.h"
#include "gui/trace/trace_pieces.h"

namespace tessera::gui {
namespace {

constexpr std::int64_t kEventsBetween = 4096;  // before it is asked whether anybody waits

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

  EventReader(std::string_view text, const std::string& file, const TraceLimits& limits,
              const PartRead& part_read, TraceEvents& events, Problems& problems)
      : text_(text),
        file_(file),
        part_read_(part_read),
        log_(file, limits, events, problems),
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

  void finish() { log_.finish(found_); }

 private:
  bool inEvent() const { return event_depth_ > 0 && depth_ == event_depth_; }
  bool inArgs() const { return event_depth_ > 0 && in_args_ && depth_ == event_depth_ + 1; }
  bool amongEvents() const { return events_depth_ > 0 && depth_ == events_depth_; }
  bool number(double value);
  bool scalar() { return !amongEvents() || log_.refuse_no_event(); }
  bool enter() {
    ++depth_;
    return depth_ <= kDeepestTrace ||
           log_.refuse(QT_TRANSLATE_NOOP("Words", "too many values within values"),
                       QT_TRANSLATE_NOOP("Words", "an event, as {\"ph\": \"X\", ...}"));
  }
  bool take();

  std::string_view text_;
  const std::string& file_;
  const PartRead& part_read_;
  EventLog log_;
  Problems& problems_;
  int depth_ = 0, events_depth_ = 0, event_depth_ = 0;
  bool array_ = false;  // the root is the list of events
  bool in_args_ = false, found_ = false;
  std::string key_;
  Fields fields_;
};

bool EventReader::number(double value) {
  if (amongEvents()) return scalar();
  if (inEvent()) {
    const bool id = key_ == "pid" || key_ == "tid";
    if (id) {
      (key_ == "pid" ? fields_.process : fields_.thread) = trace_id(value);
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
  if (value.size() > kMostTraceText) value.resize(kMostTraceText);
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
  const bool goes_on = enter();
  if (event) {
    event_depth_ = depth_;
    fields_ = {};
  }
  if (args) in_args_ = true;
  return goes_on;
}

bool EventReader::end_object() {
  const bool event = inEvent();
  if (inArgs()) in_args_ = false;
  --depth_;
  if (!event) return true;
  event_depth_ = 0;
  return take();
}

bool EventReader::start_array(std::size_t) {
  const bool root = depth_ == 0;
  const bool named = depth_ == 1 && !array_ && key_ == "traceEvents";
  if (amongEvents() && !scalar()) return false;
  if (root) log_.setRootIsList(true);
  const bool goes_on = enter();
  if (root || named) {
    array_ = root;
    events_depth_ = depth_;
    found_ = true;
  }
  return goes_on;
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
  if (ended && array_ && amongEvents() && log_.taken() > 0) return false;
  const std::string_view all = error.what();  // "...: syntax error ... - REASON; last read: ..."
  const std::string_view said = all.substr(0, all.find(';'));
  const std::size_t cut = said.rfind(": ");
  problems_.push_back(
      {file_, line_column(text_, std::min(offset, text_.size())),
       ended ? QT_TRANSLATE_NOOP("Words", "the end of the text") : "'" + token.substr(0, 60) + "'",
       "JSON", std::string(cut == std::string_view::npos ? said : said.substr(cut + 2))});
  return false;
}

// Of an event that is whole.
bool EventReader::take() {
  const char kind = fields_.kind;
  RawEvent event{.start_us = fields_.start_us.value_or(0),
                 .length_us = fields_.length_us.value_or(0),
                 .kind = kind,
                 .has_start = fields_.start_us.has_value(),
                 .bad_time = fields_.bad_time};
  const TraceNaming naming{fields_.name, fields_.given_name, fields_.sort_index};
  if (kind == 'M' && naming.of_process()) {
    log_.name_process(log_.process(fields_.process), naming);
  } else if (has_track(kind) || (kind == 'M' && naming.of_thread())) {
    event.track = log_.track(log_.process(fields_.process), fields_.thread);
    if (kind == 'M') log_.name_track(event.track, naming);
  }
  if (is_span(kind)) {
    event.name = log_.text(fields_.name);
    event.category = log_.text(fields_.category);
  }
  return log_.take(event) && (log_.taken() % kEventsBetween != 0 || part_read_({}));
}

}  // namespace

bool read_events_in_order(std::string_view text, const std::string& file, const TraceLimits& limits,
                          const PartRead& part_read, TraceEvents& events, Problems& problems) {
  Problems own;
  EventReader reader(text, file, limits, part_read, events, own);
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  reader.finish();
  problems.insert(problems.end(), own.begin(), own.end());
  return own.empty() && part_read({});
}

bool read_events(std::string_view text, const std::string& file, const TraceLimits& limits,
                 const PartRead& part_read, TraceEvents& events, Problems& problems) {
  if (const auto whole = read_pieces(text, file, limits, part_read, events)) {
    problems.insert(problems.end(), whole->begin(), whole->end());
    return whole->empty() && part_read({});
  }
  events = {};
  return part_read({}) && read_events_in_order(text, file, limits, part_read, events, problems);
}

}  // namespace tessera::gui
