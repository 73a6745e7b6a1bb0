#include "planner/interop/shell/shell_reader.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "cost_models/documents/problem.h"
#include "planner/interop/shell/shell_arithmetic.h"
#include "planner/interop/shell/shell_printed.h"

namespace tessera {
namespace {

constexpr std::size_t kMostText = std::size_t{1} << 20;    // of all expansions together
constexpr std::size_t kMostCopied = std::size_t{1} << 24;  // of variables
constexpr int kMostDepth = 32;

void unknown(ShellWord& word, std::string what) {
  word.known = false;
  word.holes.push_back(word.text.size());
  if (what.size() > 40) what = what.substr(0, 37) + "...";
  word.unknown = std::move(what);
}

}  // namespace

void ShellReader::fail(std::string found, std::string expected) {
  if (!failed_) {
    problems_.push_back({file_, std::to_string(line_), std::move(found), std::move(expected), ""});
  }
  failed_ = true;
}

char ShellReader::peek(std::size_t ahead) const {
  return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
}

char ShellReader::next() {
  const char c = text_[at_++];
  if (c == '\n') ++line_;
  return c;
}

void ShellReader::append(ShellWord& word, std::string_view text) {
  total_ += text.size();
  if (total_ > kMostText) return fail("expansions of more than 1 MiB", "a launch script");
  word.text += text;
}

void ShellReader::join(ShellWord& word, const ShellWord& other) {
  const std::size_t begin = word.text.size();
  append(word, other.text);
  if (other.known) return;
  word.known = false;
  word.unknown = other.unknown;
  total_ += other.holes.size();
  for (const std::size_t hole : other.holes) word.holes.push_back(begin + hole);
}

std::map<std::string, ShellVariable> ShellReader::copied_variables() {
  for (const auto& [name, variable] : variables) {
    copied_ += name.size() + 64;
    for (const ShellWord& word : variable.items) copied_ += word.text.size() + 64;
  }
  if (copied_ > kMostCopied) fail("branches over more than 16 MiB of variables", "a launch script");
  return variables;
}

std::vector<ShellWord> ShellReader::words(bool assigned) {
  std::vector<ShellWord> made{{.line = line_}};
  bool any = false;
  const std::size_t start = at_;
  whole_ = assigned ? 1 : 0;
  while (at_ < text_.size() && !failed_) {
    const char c = peek();
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ';' || c == '&' || c == '|' ||
        c == '<' || c == '>' || c == ')' || (c == '(' && !assigned)) {
      break;
    }
    if (c == '(') {
      fail("'(' in a value", "a word");
      break;
    }
    if (c == '\\') {
      next();
      if (at_ >= text_.size()) break;
      const char escaped = next();
      if (escaped == '\n') break;
      append(made.back(), std::string_view(&escaped, 1));
    } else if (c == '\'') {
      single_quoted(made.back());
    } else if (c == '"') {
      double_quoted(made);
    } else {
      expanded(made);
    }
    any = true;
  }
  if (at_ == start && !assigned && at_ < text_.size()) next();  // never stand still
  descriptor_end_ = peek() == '<' || peek() == '>';
  if (made.size() > 1 && made.back().text.empty() && empty_expansion_) made.pop_back();
  if (!any || (made.size() == 1 && made[0].text.empty() && empty_expansion_)) {
    empty_expansion_ = false;
    if (!assigned) return {};
  }
  empty_expansion_ = false;
  return made;
}

void ShellReader::take(ShellWord& word) {
  const char c = next();
  append(word, std::string_view(&c, 1));
}

void ShellReader::expanded(std::vector<ShellWord>& made) {
  if (peek() == '$') {
    dollar(made);
  } else if (peek() == '`') {
    backquoted(made.back());
  } else {
    take(made.back());
  }
}

void ShellReader::single_quoted(ShellWord& word) {
  const int line = line_;
  next();
  while (at_ < text_.size() && peek() != '\'') {
    take(word);
    if (failed_) return;
  }
  if (at_ >= text_.size()) {
    line_ = line;
    return fail("a quote ' that does not end", "a closing '");
  }
  next();
}

void ShellReader::double_quoted(std::vector<ShellWord>& made) {
  const int line = line_;
  next();
  ++whole_;
  while (at_ < text_.size() && peek() != '"' && !failed_) {
    const char c = peek();
    if (c == '\\') {
      next();
      if (at_ >= text_.size()) break;
      const char escaped = next();
      if (escaped == '\n') continue;
      if (escaped != '"' && escaped != '\\' && escaped != '$' && escaped != '`') {
        append(made.back(), "\\");
      }
      append(made.back(), std::string_view(&escaped, 1));
    } else {
      expanded(made);
    }
  }
  --whole_;
  if (failed_) return;
  if (at_ >= text_.size()) {
    line_ = line;
    return fail("a quote \" that does not end", "a closing \"");
  }
  next();
}

void ShellReader::backquoted(ShellWord& word) {
  const std::size_t begin = at_;
  next();
  while (at_ < text_.size() && peek() != '`') next();
  if (at_ >= text_.size()) return fail("a ` that does not end", "a closing `");
  next();
  unknown(word, std::string(text_.substr(begin, at_ - begin)));
}

void ShellReader::dollar(std::vector<ShellWord>& made) {
  const std::size_t begin = at_;
  next();
  const char c = peek();
  if (c == '(' && peek(1) == '(') return arithmetic(made.back(), begin);
  if (c == '(') return substitution(made.back(), begin);
  if (c == '{') return braces(made);
  if (starts_shell_name(c)) {
    std::string name;
    while (in_shell_name(peek())) name += next();
    return expand(made, name);
  }
  if (std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '@' || c == '*' || c == '#' ||
      c == '?' || c == '$' || c == '!') {
    next();
    if (c == '@' || c == '*') {
      empty_expansion_ = true;  // no arguments
      return;
    }
    return unknown(made.back(), std::string("$") + c);
  }
  append(made.back(), "$");
}

std::optional<std::int64_t> ShellReader::arithmetic_value() {
  int depth = 0;
  std::size_t end = at_;
  for (; end < text_.size(); ++end) {
    if (text_[end] == '(') ++depth;
    if (text_[end] == ')' && --depth == 0) break;
  }
  if (end >= text_.size()) {
    fail("a $(( that does not end", "))");
    return std::nullopt;
  }
  const std::string_view inside = text_.substr(at_ + 2, end - 1 - (at_ + 2));
  const ShellLookup lookup = [this](const std::string& name) {
    const auto found = variables.find(name);
    if (found == variables.end() || found->second.items.empty() || !found->second.items[0].known) {
      return std::optional<std::string>{};
    }
    return std::optional(found->second.items[0].text);
  };
  const auto value = shell_arithmetic(inside, lookup);
  while (at_ <= end) next();
  return value;
}

void ShellReader::arithmetic(ShellWord& word, std::size_t begin) {
  const auto value = arithmetic_value();
  if (failed_) return;
  if (value) return append(word, std::to_string(*value));
  unknown(word, std::string(text_.substr(begin, at_ - begin)));
}

void ShellReader::substitution(ShellWord& word, std::size_t begin) {
  int depth = 0;
  while (at_ < text_.size()) {
    const char c = next();
    if (c == '(') ++depth;
    if (c == ')' && --depth == 0) {
      std::string what(text_.substr(begin, at_ - begin));
      const auto printed = printed_by(text_.substr(begin + 2, at_ - begin - 3), file_);
      if (!printed) return unknown(word, std::move(what));
      if (tells_devices(what)) assumed.push_back(assumption(file_, line_, what, *printed));
      return append(word, *printed);
    }
  }
  fail("a $( that does not end", ")");
}

ShellWord ShellReader::alternative(bool& quoted) {
  ShellWord other{.line = line_};
  std::vector<ShellWord> inside{other};
  ++whole_;
  while (at_ < text_.size() && peek() != '}' && !failed_) {
    const char c = peek();
    quoted = quoted || c == '"' || c == '\'';
    if (c == '$') {
      dollar(inside);
    } else if (c == '"') {
      double_quoted(inside);
    } else if (c == '\'') {
      single_quoted(inside.back());
    } else if (c == '`') {
      backquoted(inside.back());
    } else {
      if (c == '\\') next();
      if (at_ >= text_.size()) break;
      const char plain = next();
      append(inside.back(), std::string_view(&plain, 1));
    }
  }
  --depth_;
  --whole_;
  if (failed_) return other;
  if (at_ >= text_.size()) {
    fail("a ${ that does not end", "}");
    return other;
  }
  next();
  for (const ShellWord& part : inside) join(other, part);
  return other;
}

void ShellReader::braces(std::vector<ShellWord>& made) {
  const std::size_t begin = at_ - 1;
  next();
  std::string name;
  while (in_shell_name(peek())) name += next();
  if (peek() == '}') {
    next();
    return expand(made, name);
  }
  if (peek() == '[' && (peek(1) == '@' || peek(1) == '*') && peek(2) == ']' && peek(3) == '}') {
    at_ += 4;
    return expand_array(made, name);
  }
  const bool colon = peek() == ':';
  if (colon) next();
  const char op = peek();
  if (name.empty() || (op != '-' && op != '=' && op != '+' && op != '?')) {
    return skip_braces(made.back(), begin);
  }
  next();
  if (++depth_ > kMostDepth) return fail("expansions nested too deeply", "at most 32");
  bool quoted = false;
  const std::size_t assumed_before = assumed.size();
  const ShellWord other = alternative(quoted);
  if (failed_) return;
  const auto found = variables.find(name);
  const auto put = [&] {
    if (quoted || whole_ > 0) return join(made.back(), other);
    split(made, other);
  };
  const bool set = found != variables.end() && !found->second.items.empty() &&
                   !(colon && found->second.items[0].known && found->second.items[0].text.empty());
  if (set != (op == '+')) assumed.resize(assumed_before);  // the alternative is not taken
  if (op == '+') {
    if (set) put();
    if (!set) empty_expansion_ = true;
    return;
  }
  if (set) return expand(made, name);
  if (op == '?') return unknown(made.back(), "$" + name);
  if (op == '=') variables[name] = {{other}, false};
  put();
}

void ShellReader::skip_braces(ShellWord& word, std::size_t begin) {
  int depth = 1;
  while (at_ < text_.size() && depth > 0) {
    const char c = next();
    if (c == '{') ++depth;
    if (c == '}') --depth;
  }
  if (depth > 0) return fail("a ${ that does not end", "}");
  unknown(word, std::string(text_.substr(begin, at_ - begin)));
}

void ShellReader::expand(std::vector<ShellWord>& made, const std::string& name) {
  const auto found = variables.find(name);
  if (found == variables.end() || found->second.items.empty()) {
    return unknown(made.back(), "$" + name);
  }
  const ShellWord value = found->second.items[0];
  if (whole_ > 0) return join(made.back(), value);
  split(made, value);
}

// Blanks of an expansion outside of quotes end words.
void ShellReader::split(std::vector<ShellWord>& made, const ShellWord& value) {
  static constexpr std::string_view kBlanks = " \t\n\r";
  if (value.text.empty() && value.known) empty_expansion_ = true;
  if (value.text.find_first_of(kBlanks) == std::string::npos) return join(made.back(), value);
  bool gap = false;
  for (std::size_t at = 0; at < value.text.size() && !failed_;) {
    if (kBlanks.find(value.text[at]) != kBlanks.npos) {
      gap = true;
      ++at;
      continue;
    }
    const std::size_t end = std::min(value.text.find_first_of(kBlanks, at), value.text.size());
    if (gap && !made.back().text.empty()) made.push_back({.line = line_});
    if (made.size() > 100000) return fail("more than 100000 words", "a launch script");
    ShellWord part{.text = value.text.substr(at, end - at), .line = value.line};
    for (const std::size_t hole : value.holes) {
      if (hole < at || hole > end) continue;
      part.known = false;
      part.unknown = value.unknown;
      part.holes.push_back(hole - at);
    }
    join(made.back(), part);
    gap = false;
    at = end;
  }
  if (gap && !made.back().text.empty()) made.push_back({.line = line_});
  if (made.back().text.empty()) empty_expansion_ = true;
}

// In quotes every item is a word of its own; outside of them its blanks end words, too.
void ShellReader::expand_array(std::vector<ShellWord>& made, const std::string& name) {
  const auto found = variables.find(name);
  if (found == variables.end()) return unknown(made.back(), "${" + name + "[@]}");
  const std::vector<ShellWord> items = found->second.items;
  if (items.empty()) {
    empty_expansion_ = true;
    return;
  }
  for (std::size_t i = 0; i < items.size() && !failed_; ++i) {
    if (i > 0 && (whole_ > 0 || !made.back().text.empty())) {
      made.push_back({.line = items[i].line});
    }
    if (made.size() > 100000) return fail("more than 100000 words", "a launch script");
    if (made.back().text.empty()) made.back().line = items[i].line;
    if (whole_ > 0) {
      join(made.back(), items[i]);
    } else {
      split(made, items[i]);
    }
  }
}

}  // namespace tessera
