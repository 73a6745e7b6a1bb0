// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/trace/trace_text.h"

#include <algorithm>

namespace tessera::gui {
namespace {

constexpr std::string_view kSpace = " \t\r\n";
// Of bytes that are looked through for an object's ph, of commas that are tried for a cut, and of
// bytes without one: a text of brackets alone takes no longer than another.
constexpr std::size_t kMostObject = 16'384, kMostCommas = 1000, kMostPiece = std::size_t{64} << 20;

/// Goes through a text bracket by bracket and string by string.
class TextScan {
 public:
  TextScan(std::string_view text, std::size_t at) : text_(text), at_(at) {}

  /// The next bracket or opening quote, which is left behind; 0 = none is left.
  char next() {
    for (; at_ < text_.size(); ++at_) {
      const char one = text_[at_];
      if (one == '{' || one == '[') ++depth_;
      if (one == '}' || one == ']') --depth_;
      if (one == '"') string();
      if (one == '{' || one == '[' || one == '}' || one == ']' || one == '"') {
        ++at_;
        return one;
      }
    }
    return 0;
  }
  std::size_t at() const { return at_; }
  int depth() const { return depth_; }
  /// The string that was met last, with its escapes.
  std::string_view last() const { return last_; }
  /// Whether a `wanted` comes next, behind a colon; it is left to next().
  bool isKeyOf(char wanted) const {
    const std::size_t colon = text_.find_first_not_of(kSpace, at_);
    if (colon == std::string_view::npos || text_[colon] != ':') return false;
    const std::size_t value = text_.find_first_not_of(kSpace, colon + 1);
    return value != std::string_view::npos && text_[value] == wanted;
  }

 private:
  void string() {
    const std::size_t begin = at_ + 1;
    std::size_t end = begin;
    while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
    end = std::min(end, text_.size());
    last_ = text_.substr(begin, end - begin);
    at_ = std::min(end, text_.size() - 1);
  }

  std::string_view text_;
  std::size_t at_;
  int depth_ = 0;
  std::string_view last_;
};

// Of an object that begins here; it need not end.
bool has_kind(std::string_view text, std::size_t at) {
  TextScan scan(text.substr(at, kMostObject), 0);
  while (const char one = scan.next()) {
    if (scan.depth() == 0) return false;
    if (one == '"' && scan.depth() == 1 && scan.last() == "ph" && scan.isKeyOf('"')) return true;
  }
  return false;
}

/// A comma between two objects.
struct Cut {
  std::size_t comma = 0, next = 0;
};

std::optional<Cut> cut_behind(std::string_view text, std::size_t at, std::size_t most) {
  const std::string_view until = text.substr(0, std::min(text.size(), most));
  std::size_t tried = 0;
  for (std::size_t comma = until.find(',', at); comma != std::string_view::npos;
       comma = until.find(',', comma + 1)) {
    const std::size_t before = until.find_last_not_of(kSpace, comma - 1);
    const std::size_t next = until.find_first_not_of(kSpace, comma + 1);
    if (before == std::string_view::npos || next == std::string_view::npos) continue;
    if (until[before] != '}' || until[next] != '{') continue;
    if (has_kind(until, next)) return Cut{comma, next};
    if (++tried == kMostCommas) break;
  }
  return std::nullopt;
}

// Where the list ends; where its end is missing, behind its last event, if nothing has begun there.
std::optional<std::size_t> list_end(std::string_view text, std::size_t begin) {
  TextScan scan(text, begin);
  std::size_t last_event = begin;
  while (const char one = scan.next()) {
    if (scan.depth() < 0) return scan.at() - 1;
    if (one == '}' && scan.depth() == 0) last_event = scan.at();
  }
  if (last_event == begin || !is_missing_end(text.substr(last_event))) return std::nullopt;
  return last_event;
}

}  // namespace

std::optional<std::size_t> list_begin(std::string_view text) {
  TextScan scan(text, 0);
  const char root = scan.next();
  if (root == '[') return scan.at();
  if (root != '{') return std::nullopt;
  while (const char one = scan.next()) {
    const bool list = one == '"' && scan.depth() == 1 && scan.last() == "traceEvents";
    if (!list || !scan.isKeyOf('[')) continue;
    scan.next();
    return scan.at();
  }
  return std::nullopt;
}

bool is_missing_end(std::string_view behind_events) {
  const std::size_t comma = behind_events.find_first_not_of(kSpace);
  return comma == std::string_view::npos ||
         (behind_events[comma] == ',' &&
          behind_events.find_first_not_of(kSpace, comma + 1) == std::string_view::npos);
}

std::vector<EventList> pieces_of(std::string_view text, std::size_t begin, std::size_t piece) {
  std::vector<EventList> pieces;
  while (text.size() - begin > piece) {
    const auto cut = cut_behind(text, begin + piece, begin + 2 * piece);
    if (!cut) break;
    pieces.push_back({begin, cut->comma});
    begin = cut->next;
  }
  if (text.size() - begin > kMostPiece) return {};
  const auto end = list_end(text, begin);
  if (!end) return {};
  pieces.push_back({begin, *end});
  return pieces;
}

}  // namespace tessera::gui
