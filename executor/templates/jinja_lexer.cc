#include "executor/templates/jinja_lexer.h"

#include <algorithm>
#include <charconv>

#include "executor/data/python_text.h"
#include "executor/templates/jinja_value.h"

namespace tessera {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {
    if (source_.ends_with('\n')) source_.remove_suffix(1);  // keep_trailing_newline is false
  }

  std::vector<JinjaPiece> run() {
    while (at_ < source_.size()) {
      const std::size_t tag = next_tag();
      std::string text(source_.substr(at_, tag - at_));
      const int line = line_;
      advance(tag);
      if (at_ == source_.size()) {
        put_text(std::move(text), line);
        break;
      }
      const char kind = source_[at_ + 1];
      const char mark = at_ + 2 < source_.size() ? source_[at_ + 2] : ' ';
      const bool marked = mark == '-' || mark == '+';
      if (mark == '-') strip_right(text);
      if (mark != '-' && mark != '+' && kind != '{') strip_line_start(text);
      put_text(std::move(text), line);
      advance(at_ + (marked ? 3 : 2));
      kind == '#' ? skip_comment() : read_tag(kind);
    }
    return std::move(pieces_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw TemplateError("line " + std::to_string(line_) + ": " + what);
  }

  std::size_t next_tag() const {
    for (std::size_t at = source_.find('{', at_); at != source_.npos;
         at = source_.find('{', at + 1)) {
      if (at + 1 >= source_.size()) break;
      const char next = source_[at + 1];
      if (next == '{' || next == '%' || next == '#') return at;
    }
    return source_.size();
  }

  void advance(std::size_t to) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    at_ = to;
  }

  void put_text(std::string text, int line) {
    if (text.empty()) return;
    pieces_.push_back({.line = line, .text = std::move(text), .tokens = {}});
  }

  static void strip_right(std::string& text) {
    while (!text.empty() && is_space(text.back())) text.pop_back();
  }

  /// lstrip_blocks: white space between the start of the line and the tag.
  void strip_line_start(std::string& text) const {
    const std::size_t line = text.rfind('\n');
    const std::size_t from = line == text.npos ? 0 : line + 1;
    const bool at_start = line != text.npos || starts_line_;
    if (at_start &&
        std::all_of(text.begin() + static_cast<std::ptrdiff_t>(from), text.end(), is_space)) {
      text.resize(from);
    }
  }

  /// After a tag: what its end strips. `block`: the first line end goes.
  void after_tag(bool strip, bool keep, bool block) {
    starts_line_ = false;
    std::size_t to = at_;
    if (strip) {
      while (to < source_.size() && is_space(source_[to])) ++to;
    } else if (block && !keep) {
      if (source_.substr(to).starts_with("\r\n")) ++to;
      if (to < source_.size() && source_[to] == '\n') ++to;
    }
    starts_line_ = to > at_ && source_[to - 1] == '\n';
    advance(to);
  }

  void skip_comment() {
    const std::size_t end = source_.find("#}", at_);
    if (end == source_.npos) fail("a comment without an end");
    const bool strip = end > at_ && source_[end - 1] == '-',
               keep = end > at_ && source_[end - 1] == '+';
    advance(end + 2);
    after_tag(strip, keep, true);
  }

  void read_tag(char kind) {
    JinjaPiece piece{.kind = kind == '{' ? JinjaPiece::Kind::output : JinjaPiece::Kind::statement,
                     .line = line_,
                     .text = {},
                     .tokens = {}};
    const std::string end = kind == '{' ? "}}" : "%}";
    int open = 0;  // brackets
    while (true) {
      while (at_ < source_.size() && is_space(source_[at_])) advance(at_ + 1);
      if (at_ >= source_.size()) fail("a tag without an end");
      const std::string_view rest = source_.substr(at_);
      const bool marked = (rest[0] == '-' || rest[0] == '+') && rest.substr(1).starts_with(end);
      if (open == 0 && (marked || rest.starts_with(end))) {
        advance(at_ + (marked ? 3 : 2));
        after_tag(marked && rest[0] == '-', marked && rest[0] == '+', kind == '%');
        break;
      }
      JinjaToken token = read_token();
      if (token.kind == JinjaToken::Kind::sign) {
        if (token.text == "(" || token.text == "[" || token.text == "{") ++open;
        if (token.text == ")" || token.text == "]" || token.text == "}") --open;
      }
      piece.tokens.push_back(std::move(token));
    }
    piece.tokens.push_back(
        {.kind = JinjaToken::Kind::end, .text = "the end of the tag", .line = line_});
    pieces_.push_back(std::move(piece));
  }

  JinjaToken read_token() {
    const char c = source_[at_];
    if (c == '"' || c == '\'') return read_string(c);
    std::size_t to = at_;
    JinjaToken token{.line = line_};
    if (starts_name(c)) {
      while (to < source_.size() && (starts_name(source_[to]) || is_digit(source_[to]))) ++to;
      token.kind = JinjaToken::Kind::name;
    } else if (is_digit(c)) {
      token.kind = JinjaToken::Kind::integer;
      while (to < source_.size() && (is_digit(source_[to]) || source_[to] == '_')) ++to;
      if (to + 1 < source_.size() && source_[to] == '.' && is_digit(source_[to + 1])) {
        token.kind = JinjaToken::Kind::number;
        for (++to; to < source_.size() && is_digit(source_[to]);) ++to;
      }
      std::size_t power = to + 1;  // of an exponent
      if (power < source_.size() && (source_[power] == '-' || source_[power] == '+')) ++power;
      if (to < source_.size() && (source_[to] | 0x20) == 'e' && power < source_.size() &&
          is_digit(source_[power])) {
        token.kind = JinjaToken::Kind::number;
        for (to = power; to < source_.size() && is_digit(source_[to]);) ++to;
      }
    } else {
      static constexpr std::string_view kSigns[] = {
          "==", "!=", "<=", ">=", "//", "**", "+", "-", "*", "/", "%", "~", "<",
          ">",  "=",  "(",  ")",  "[",  "]",  "{", "}", ",", ".", ":", "|"};
      const auto* sign = std::ranges::find_if(
          kSigns, [&](std::string_view s) { return source_.substr(at_).starts_with(s); });
      if (sign == std::end(kSigns)) fail(std::string("the character '") + c + "'");
      token.kind = JinjaToken::Kind::sign;
      to += sign->size();
    }
    token.text = source_.substr(at_, to - at_);
    std::erase(token.text, token.kind == JinjaToken::Kind::integer ? '_' : '\0');
    advance(to);
    return token;
  }

  /// The character whose number stands in `digits` hexadecimal digits.
  std::string code_point(std::size_t at, std::size_t digits) const {
    const std::string_view text = source_.substr(std::min(at, source_.size()), digits);
    std::uint32_t point = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), point, 16);
    const bool whole = text.size() == digits && read.ptr == text.data() + digits;
    if (!whole || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) {
      fail("an escape that names no character");
    }
    const auto character = static_cast<char32_t>(point);
    return utf8_of(std::u32string_view(&character, 1));
  }

  /// A string of Python with its usual escapes.
  JinjaToken read_string(char quote) {
    JinjaToken token{.kind = JinjaToken::Kind::string, .text = {}, .line = line_};
    std::size_t to = at_ + 1;
    for (; to < source_.size() && source_[to] != quote; ++to) {
      if (source_[to] != '\\' || to + 1 >= source_.size()) {
        token.text += source_[to];
        continue;
      }
      const char c = source_[++to];
      switch (c) {
        case 'n':
          token.text += '\n';
          break;
        case 't':
          token.text += '\t';
          break;
        case 'r':
          token.text += '\r';
          break;
        case '\\':
        case '\'':
        case '"':
          token.text += c;
          break;
        case '\n':
          break;
        case 'x':
          token.text += code_point(to + 1, 2);
          to += 2;
          break;
        case 'u':
          token.text += code_point(to + 1, 4);
          to += 4;
          break;
        case 'U':
          token.text += code_point(to + 1, 8);
          to += 8;
          break;
        case 'a':
        case 'b':
        case 'f':
        case 'v':
        case 'N':
          fail(std::string("the escape \\") + c);
        default:
          if (is_digit(c)) fail(std::string("the escape \\") + c);
          (token.text += '\\') += c;
      }
    }
    if (to >= source_.size()) fail("a string without an end");
    advance(to + 1);
    return token;
  }

  std::string_view source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool starts_line_ = true;  // what follows the last tag begins a line
  std::vector<JinjaPiece> pieces_;
};

}  // namespace

std::vector<JinjaPiece> lex_jinja(std::string_view source) { return Lexer(source).run(); }

}  // namespace tessera
