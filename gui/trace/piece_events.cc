// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/trace/piece_events.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace tessera::gui {
namespace {

namespace dom = simdjson::dom;

/// The parts of an event that count; views into the parser's room.
struct Fields {
  RawEvent event;
  std::string_view name, category, given_name;
  std::optional<double> sort_index;
  std::string_view process, thread;
  char process_digits[24] = {}, thread_digits[24] = {};
};

std::string_view cut(std::string_view text) { return text.substr(0, kMostTraceText); }

// A process's or thread's key: a text, or a number as trace_id() has it. False: it has more digits.
bool take_id(const dom::element& value, std::string_view& id, char (&digits)[24]) {
  std::int64_t whole = 0;
  if (std::string_view text; value.get_string().get(text) == simdjson::SUCCESS) {
    id = cut(text);
  } else if (value.get_int64().get(whole) == simdjson::SUCCESS && std::abs(whole) < (1LL << 53)) {
    const auto end = std::to_chars(std::begin(digits), std::end(digits), whole).ptr;
    id = {digits, static_cast<std::size_t>(end - digits)};
  } else if (double number = 0; value.get_double().get(number) == simdjson::SUCCESS) {
    const std::string text = trace_id(number);
    if (text.size() > sizeof digits) return false;
    std::memcpy(digits, text.data(), text.size());
    id = {digits, text.size()};
  }
  return true;
}

void take_arguments(const dom::element& value, Fields& fields) {
  dom::object arguments;
  if (value.get_object().get(arguments) != simdjson::SUCCESS) return;
  for (const auto& [key, one] : arguments) {
    std::string_view text;
    double number = 0;
    if (key == "name" && one.get_string().get(text) == simdjson::SUCCESS) {
      fields.given_name = cut(text);
    } else if (key == "sort_index" && one.get_double().get(number) == simdjson::SUCCESS) {
      fields.sort_index = number;
    }
  }
}

void take_text(std::string_view key, std::string_view text, Fields& fields) {
  if (key == "ph") {
    fields.event.kind = text.size() == 1 ? text.front() : '?';
  } else if (key == "name") {
    fields.name = cut(text);
  } else if (key == "cat") {
    fields.category = cut(text);
  } else if (key == "ts" || key == "dur") {
    fields.event.bad_time = true;
  }
}

bool take_field(std::string_view key, const dom::element& value, Fields& fields) {
  if (key == "pid") return take_id(value, fields.process, fields.process_digits);
  if (key == "tid") return take_id(value, fields.thread, fields.thread_digits);
  std::string_view text;
  double number = 0;
  if (key == "args") {
    take_arguments(value, fields);
  } else if (value.get_string().get(text) == simdjson::SUCCESS) {
    take_text(key, text, fields);
  } else if ((key == "ts" || key == "dur") && value.get_double().get(number) == simdjson::SUCCESS) {
    (key == "ts" ? fields.event.start_us : fields.event.length_us) = number;
    fields.event.has_start |= key == "ts";
  }
  return true;
}

/// Numbers what the events of one piece name.
class PieceLog {
 public:
  void take(Fields& fields) {
    const char kind = fields.event.kind;
    const TraceNaming naming{fields.name, fields.given_name, fields.sort_index};
    if (is_span(kind)) {
      fields.event.name = place(texts_, fields.name, out_.texts);
      fields.event.category = place(texts_, fields.category, out_.texts);
    }
    if (has_track(kind)) fields.event.track = track(fields);
    if (kind == 'M') fields.event.name = name(naming, fields);
    out_.events.push_back(fields.event);
  }
  PieceEvents events() && { return std::move(out_); }

 private:
  static std::uint32_t place(TextPlaces& places, std::string_view text,
                             std::vector<std::string>& texts) {
    const auto [at, fresh] = places.at(text);
    if (fresh) texts.emplace_back(text);
    return at;
  }

  std::uint32_t process(const Fields& fields) {
    return place(processes_, fields.process, out_.processes);
  }

  std::uint32_t track(const Fields& fields) {
    const std::uint32_t process_at = process(fields);
    key_.assign(reinterpret_cast<const char*>(&process_at), sizeof process_at);
    key_ += fields.thread;
    const auto [at, fresh] = tracks_.at(key_);
    if (fresh) out_.tracks.push_back({process_at, std::string(fields.thread)});
    return at;
  }

  std::uint32_t name(const TraceNaming& naming, const Fields& fields) {
    if (!naming.of_process() && !naming.of_thread()) return kNoNaming;
    out_.namings.push_back({std::string(naming.of), std::string(naming.name), naming.sort_index,
                            naming.of_process() ? process(fields) : track(fields)});
    return static_cast<std::uint32_t>(out_.namings.size() - 1);
  }

  PieceEvents out_;
  TextPlaces texts_, processes_, tracks_;
  std::string key_;
};

}  // namespace

struct PieceParser::Room {
  dom::parser parser;
  std::vector<char> text;
};

PieceParser::PieceParser() : room_(std::make_unique<Room>()) {}
PieceParser::~PieceParser() = default;

std::optional<PieceEvents> PieceParser::parse(std::string_view piece) {
  std::vector<char>& text = room_->text;
  const std::size_t size = piece.size() + 2;  // with brackets
  text.resize(std::max(text.size(), size + simdjson::SIMDJSON_PADDING));
  text.front() = '[';
  if (!piece.empty()) std::memcpy(text.data() + 1, piece.data(), piece.size());
  text[size - 1] = ']';
  const bool room = room_->parser.capacity() >= size;
  if (!room && room_->parser.allocate(size, kDeepestTrace - 1) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  dom::array list;
  if (room_->parser.parse(text.data(), size, false).get_array().get(list) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  PieceLog log;
  for (const dom::element& item : list) {
    dom::object object;
    if (item.get_object().get(object) != simdjson::SUCCESS) return std::nullopt;
    Fields fields;
    for (const auto& [key, value] : object) {
      if (!take_field(key, value, fields)) return std::nullopt;
    }
    log.take(fields);
  }
  return std::move(log).events();
}

}  // namespace tessera::gui
