#include "planner/interop/shell_words.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

namespace tessera {
namespace {

constexpr std::size_t kMostText = std::size_t{1} << 20;  // of all expansions together
constexpr int kMostDepth = 32;

struct Value {
  std::vector<ShellWord> items;  // one for a scalar
  bool array = false;
};

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Integer arithmetic of $((...)): + - * / % and parentheses over numbers and variables.
class Arithmetic {
 public:
  using Lookup = std::function<std::optional<std::string>(const std::string&)>;
  Arithmetic(std::string_view text, const Lookup& lookup, int depth)
      : text_(text), lookup_(lookup), depth_(depth) {}

  std::optional<std::int64_t> value() {
    const auto result = sum();
    skip();
    return at_ == text_.size() ? result : std::nullopt;
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::optional<std::int64_t> sum() {
    auto left = product();
    while (left) {
      const bool plus = take('+');
      if (!plus && !take('-')) break;
      const auto right = product();
      std::int64_t result = 0;
      if (!right || (plus ? __builtin_add_overflow(*left, *right, &result)
                          : __builtin_sub_overflow(*left, *right, &result))) {
        return std::nullopt;
      }
      left = result;
    }
    return left;
  }
  std::optional<std::int64_t> product() {
    auto left = factor();
    while (left) {
      skip();
      const char op = at_ < text_.size() ? text_[at_] : '\0';
      if (op != '*' && op != '/' && op != '%') break;
      ++at_;
      const auto right = factor();
      if (!right) return std::nullopt;
      std::int64_t result = 0;
      if (op == '*') {
        if (__builtin_mul_overflow(*left, *right, &result)) return std::nullopt;
      } else {
        if (*right == 0 || *right == -1) return std::nullopt;
        result = op == '/' ? *left / *right : *left % *right;
      }
      left = result;
    }
    return left;
  }
  std::optional<std::int64_t> factor() {
    if (++depth_ > kMostDepth) return std::nullopt;
    struct Leave {
      int& depth;
      ~Leave() { --depth; }
    } leave{depth_};
    if (take('(')) {
      const auto inner = sum();
      return take(')') ? inner : std::nullopt;
    }
    if (take('-')) {
      const auto inner = factor();
      if (!inner || *inner == INT64_MIN) return std::nullopt;
      return -*inner;
    }
    skip();
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (in_name(text_[at_]) || text_[at_] == '$' || text_[at_] == '{' || text_[at_] == '}')) {
      ++at_;
    }
    std::string name(text_.substr(begin, at_ - begin));
    std::erase_if(name, [](char c) { return c == '$' || c == '{' || c == '}'; });
    if (name.empty()) return std::nullopt;
    if (std::isdigit(static_cast<unsigned char>(name[0])) != 0) return number(name);
    const auto text = lookup_(name);
    if (!text) return std::nullopt;
    return Arithmetic(*text, lookup_, depth_ + 1).value();
  }
  static std::optional<std::int64_t> number(const std::string& digits) {
    std::int64_t result = 0;
    for (const char c : digits) {
      if (std::isdigit(static_cast<unsigned char>(c)) == 0 ||
          __builtin_mul_overflow(result, std::int64_t{10}, &result) ||
          __builtin_add_overflow(result, std::int64_t{c - '0'}, &result)) {
        return std::nullopt;
      }
    }
    return result;
  }

  std::string_view text_;
  const Lookup& lookup_;
  int depth_;
  std::size_t at_ = 0;
};

class Reader {
 public:
  Reader(std::string_view script, const std::string& file, Problems& problems)
      : text_(script), file_(file), problems_(problems) {}

  std::vector<ShellCommand> run() {
    while (at_ < text_.size() && !failed_) step();
    end_command();
    if (failed_) return {};
    return std::move(commands_);
  }

 private:
  void fail(std::string found, std::string expected) {
    if (!failed_) {
      problems_.push_back(
          {file_, std::to_string(line_), std::move(found), std::move(expected), ""});
    }
    failed_ = true;
  }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  char next() {
    const char c = text_[at_++];
    if (c == '\n') ++line_;
    return c;
  }

  void step() {
    const char c = peek();
    if (c == ' ' || c == '\t' || c == '\r') {
      next();
    } else if (c == '\\' && peek(1) == '\n') {
      next(), next();
    } else if (c == '\\' && peek(1) == '\r' && peek(2) == '\n') {
      next(), next(), next();
    } else if (c == '#') {
      while (at_ < text_.size() && peek() != '\n') next();
    } else if (c == '\n') {
      next();
      end_command();
      skip_here_documents();
    } else if (c == ';' || c == '&' || c == '|') {
      next();
      end_command();
    } else if (c == '(' || c == ')') {
      next();
      end_command();
    } else if (c == '<' || c == '>') {
      redirection();
    } else if (command_.empty() && assignment()) {
      // taken
    } else {
      const std::vector<ShellWord> made = words();
      for (const ShellWord& word : made) add_word(word);
    }
  }

  void add_word(const ShellWord& word) {
    static constexpr std::string_view kReserved[] = {
        "if", "then", "else", "elif",   "fi",    "do",       "done",    "while",
        "{",  "}",    "!",    "export", "local", "readonly", "declare", "until"};
    const bool reserved = command_.empty() && std::find(std::begin(kReserved), std::end(kReserved),
                                                        word.text) != std::end(kReserved);
    if (!reserved) command_.push_back(word);
  }

  void end_command() {
    if (!command_.empty()) commands_.push_back(std::move(command_));
    command_.clear();
  }

  // `< file`, `> file`, `2>&1`, `<<WORD`: the word is not an argument.
  void redirection() {
    const bool in = peek() == '<';
    next();
    if (in && peek() == '<') {
      next();
      if (peek() == '<') {  // here-string
        next();
        skip_blanks();
        words();
        return;
      }
      const bool tabs = peek() == '-';
      if (tabs) next();
      skip_blanks();
      std::string end;
      for (const ShellWord& word : words()) end += word.text;
      here_documents_.push_back({end, tabs});
      return;
    }
    if (peek() == '>' || peek() == '|') next();
    if (peek() == '&') next();
    if (peek() == '(') return fail("process substitution", "a file after '<' or '>'");
    drop_descriptor();
    skip_blanks();
    if (peek() != '\n' && at_ < text_.size()) words();
  }

  // `2` of `2>file` was read as a word.
  void drop_descriptor() {
    if (!command_.empty() && command_.back().text.size() == 1 &&
        std::isdigit(static_cast<unsigned char>(command_.back().text[0])) != 0 &&
        descriptor_end_ == true) {
      command_.pop_back();
    }
  }

  void skip_blanks() {
    while (peek() == ' ' || peek() == '\t') next();
  }

  void skip_here_documents() {
    for (const auto& [end, tabs] : here_documents_) {
      while (at_ < text_.size()) {
        std::string line;
        while (at_ < text_.size() && peek() != '\n') line += next();
        if (at_ < text_.size()) next();
        if (tabs) line.erase(0, line.find_first_not_of('\t'));
        if (line == end) break;
      }
    }
    here_documents_.clear();
  }

  // NAME=value, NAME+=value, NAME=(...), NAME[..]=...; true when one was read.
  bool assignment() {
    if (!starts_name(peek())) return false;
    std::size_t end = at_;
    while (end < text_.size() && in_name(text_[end])) ++end;
    const bool append = end + 1 < text_.size() && text_[end] == '+' && text_[end + 1] == '=';
    if (!append && (end >= text_.size() || text_[end] != '=')) return false;
    const std::string name(text_.substr(at_, end - at_));
    at_ = end + (append ? 2 : 1);
    Value value;
    if (peek() == '(') {
      next();
      value.array = true;
      array_items(value.items);
    } else {
      ShellWord whole{.line = line_};
      for (const ShellWord& word : words(true)) join(whole, word);
      value.items = {whole};
    }
    Value& stored = variables_[name];
    if (append && value.array) {
      stored.array = true;
      stored.items.insert(stored.items.end(), value.items.begin(), value.items.end());
    } else if (append && !stored.items.empty()) {
      join(stored.items[0], value.items[0]);
    } else {
      stored = std::move(value);
    }
    return true;
  }

  void array_items(std::vector<ShellWord>& items) {
    while (at_ < text_.size() && !failed_) {
      const char c = peek();
      if (c == ')') {
        next();
        return;
      }
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        next();
      } else if (c == '\\' && peek(1) == '\n') {
        next(), next();
      } else if (c == '#') {
        while (at_ < text_.size() && peek() != '\n') next();
      } else if (c == '(' || c == '<' || c == '>' || c == '|' || c == ';' || c == '&') {
        return fail(std::string("'") + c + "' in an array", "words");
      } else {
        const std::vector<ShellWord> made = words();
        items.insert(items.end(), made.begin(), made.end());
      }
    }
    if (!failed_) fail("an array that does not end", "')'");
  }

  void append(ShellWord& word, std::string_view text) {
    total_ += text.size();
    if (total_ > kMostText) return fail("expansions of more than 1 MiB", "a launch script");
    word.text += text;
  }
  void join(ShellWord& word, const ShellWord& other) {
    append(word, other.text);
    if (!other.known) {
      word.known = false;
      word.unknown = other.unknown;
    }
  }

  // One word as it is written; several where it holds "${array[@]}". Unquoted expansions are not
  // split, as scripts rely on it hardly ever.
  std::vector<ShellWord> words(bool assigned = false) {
    std::vector<ShellWord> made{{.line = line_}};
    bool any = false;
    const std::size_t start = at_;
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
      } else if (c == '$') {
        dollar(made);
      } else if (c == '`') {
        backquoted(made.back());
      } else {
        const char plain = next();
        append(made.back(), std::string_view(&plain, 1));
      }
      any = true;
    }
    if (at_ == start) next();  // never stand still
    descriptor_end_ = peek() == '<' || peek() == '>';
    if (!any || (made.size() == 1 && made[0].text.empty() && empty_expansion_)) {
      empty_expansion_ = false;
      if (!assigned) return {};
    }
    empty_expansion_ = false;
    return made;
  }

  void single_quoted(ShellWord& word) {
    const int line = line_;
    next();
    while (at_ < text_.size() && peek() != '\'') {
      const char c = next();
      append(word, std::string_view(&c, 1));
      if (failed_) return;
    }
    if (at_ >= text_.size()) {
      line_ = line;
      return fail("a quote ' that does not end", "a closing '");
    }
    next();
  }

  void double_quoted(std::vector<ShellWord>& made) {
    const int line = line_;
    next();
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
      } else if (c == '$') {
        dollar(made);
      } else if (c == '`') {
        backquoted(made.back());
      } else {
        const char plain = next();
        append(made.back(), std::string_view(&plain, 1));
      }
    }
    if (failed_) return;
    if (at_ >= text_.size()) {
      line_ = line;
      return fail("a quote \" that does not end", "a closing \"");
    }
    next();
  }

  static void unknown(ShellWord& word, std::string what) {
    word.known = false;
    if (what.size() > 40) what = what.substr(0, 37) + "...";
    word.unknown = std::move(what);
  }

  void backquoted(ShellWord& word) {
    const std::size_t begin = at_;
    next();
    while (at_ < text_.size() && peek() != '`') next();
    if (at_ >= text_.size()) return fail("a ` that does not end", "a closing `");
    next();
    unknown(word, std::string(text_.substr(begin, at_ - begin)));
  }

  void dollar(std::vector<ShellWord>& made) {
    const std::size_t begin = at_;
    next();
    const char c = peek();
    if (c == '(' && peek(1) == '(') return arithmetic(made.back(), begin);
    if (c == '(') return substitution(made.back(), begin);
    if (c == '{') return braces(made);
    if (starts_name(c)) {
      std::string name;
      while (in_name(peek())) name += next();
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

  void arithmetic(ShellWord& word, std::size_t begin) {
    int depth = 0;
    std::size_t end = at_;
    for (; end < text_.size(); ++end) {
      if (text_[end] == '(') ++depth;
      if (text_[end] == ')' && --depth == 0) break;
    }
    if (end >= text_.size()) return fail("a $(( that does not end", "))");
    const std::string_view inside = text_.substr(at_ + 2, end - 1 - (at_ + 2));
    const Arithmetic::Lookup lookup = [this](const std::string& name) {
      const auto found = variables_.find(name);
      if (found == variables_.end() || found->second.items.empty() ||
          !found->second.items[0].known) {
        return std::optional<std::string>{};
      }
      return std::optional(found->second.items[0].text);
    };
    const auto value = Arithmetic(inside, lookup, 0).value();
    while (at_ <= end) next();
    if (value) return append(word, std::to_string(*value));
    unknown(word, std::string(text_.substr(begin, at_ - begin)));
  }

  void substitution(ShellWord& word, std::size_t begin) {
    int depth = 0;
    while (at_ < text_.size()) {
      const char c = next();
      if (c == '(') ++depth;
      if (c == ')' && --depth == 0) {
        return unknown(word, std::string(text_.substr(begin, at_ - begin)));
      }
    }
    fail("a $( that does not end", ")");
  }

  // ${NAME}, ${NAME[@]}, ${NAME:-text} and its kin.
  void braces(std::vector<ShellWord>& made) {
    const std::size_t begin = at_ - 1;
    next();
    std::string name;
    while (in_name(peek())) name += next();
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
    ShellWord other{.line = line_};
    std::vector<ShellWord> inside{other};
    while (at_ < text_.size() && peek() != '}' && !failed_) {
      const char c = peek();
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
    if (failed_) return;
    if (at_ >= text_.size()) return fail("a ${ that does not end", "}");
    next();
    for (std::size_t i = 0; i < inside.size(); ++i) join(other, inside[i]);
    const auto found = variables_.find(name);
    const bool set =
        found != variables_.end() && !found->second.items.empty() &&
        !(colon && found->second.items[0].known && found->second.items[0].text.empty());
    if (op == '+') {
      if (set) join(made.back(), other);
      return;
    }
    if (set) return expand(made, name);
    if (op == '?') return unknown(made.back(), "$" + name);
    if (op == '=') variables_[name] = {{other}, false};
    join(made.back(), other);
  }

  void skip_braces(ShellWord& word, std::size_t begin) {
    int depth = 1;
    while (at_ < text_.size() && depth > 0) {
      const char c = next();
      if (c == '{') ++depth;
      if (c == '}') --depth;
    }
    if (depth > 0) return fail("a ${ that does not end", "}");
    unknown(word, std::string(text_.substr(begin, at_ - begin)));
  }

  void expand(std::vector<ShellWord>& made, const std::string& name) {
    const auto found = variables_.find(name);
    if (found == variables_.end() || found->second.items.empty()) {
      return unknown(made.back(), "$" + name);
    }
    const ShellWord value = found->second.items[0];
    join(made.back(), value);
  }

  void expand_array(std::vector<ShellWord>& made, const std::string& name) {
    const auto found = variables_.find(name);
    if (found == variables_.end()) return unknown(made.back(), "${" + name + "[@]}");
    const std::vector<ShellWord> items = found->second.items;
    if (items.empty()) {
      empty_expansion_ = true;
      return;
    }
    for (std::size_t i = 0; i < items.size() && !failed_; ++i) {
      if (i > 0) made.push_back({.line = items[i].line});
      if (made.size() > 100000) return fail("more than 100000 words", "a launch script");
      if (made.back().text.empty()) made.back().line = items[i].line;
      join(made.back(), items[i]);
    }
  }

  std::string_view text_;
  const std::string& file_;
  Problems& problems_;
  std::size_t at_ = 0, total_ = 0;
  int line_ = 1, depth_ = 0;
  bool failed_ = false, descriptor_end_ = false, empty_expansion_ = false;
  std::map<std::string, Value> variables_;
  std::vector<std::pair<std::string, bool>> here_documents_;
  ShellCommand command_;
  std::vector<ShellCommand> commands_;
};

}  // namespace

std::vector<ShellCommand> shell_commands(std::string_view script, const std::string& file,
                                         Problems& problems) {
  return Reader(script, file, problems).run();
}

}  // namespace tessera
