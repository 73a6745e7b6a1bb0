#include "planner/interop/shell/shell_outcome.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <string>

namespace tessera {
namespace {

using Outcome = std::optional<bool>;

constexpr int kMostDepth = 32;
constexpr std::size_t kMostPattern = 256;  // bytes; matching takes their product

Outcome negated(Outcome value) {
  if (value) value = !*value;
  return value;
}

Outcome both(Outcome a, Outcome b) {
  if ((a && !*a) || (b && !*b)) return false;
  return a && b ? Outcome(true) : std::nullopt;
}

Outcome either(Outcome a, Outcome b) { return negated(both(negated(a), negated(b))); }

std::optional<std::int64_t> whole(const std::string& text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && at == end ? std::optional(value) : std::nullopt;
}

bool glob(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = pattern.npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (star != pattern.npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// Words of a test between its brackets.
class Test {
 public:
  Test(const ShellCommand& words, std::size_t first, std::size_t last, bool patterns)
      : words_(words), at_(first), last_(last), patterns_(patterns) {}

  Outcome value() {
    if (at_ == last_) return false;
    const Outcome result = any();
    return at_ == last_ && !malformed_ ? result : std::nullopt;
  }

 private:
  bool is(std::string_view text) const { return at_ < last_ && words_[at_].text == text; }
  bool take(std::string_view text) {
    if (!is(text)) return false;
    ++at_;
    return true;
  }
  Outcome any() {
    Outcome left = all();
    while (take("||") || take("-o")) left = either(left, all());
    return left;
  }
  Outcome all() {
    Outcome left = one();
    while (take("&&") || take("-a")) left = both(left, one());
    return left;
  }
  Outcome one() {
    if (++depth_ > kMostDepth || at_ == last_) {
      malformed_ = true;
      at_ = last_;
      return std::nullopt;
    }
    if (at_ + 1 < last_ && take("!")) return negated(one());
    if (take("(")) {
      const Outcome inner = any();
      malformed_ = !take(")") || malformed_;
      return inner;
    }
    if (at_ + 2 < last_ && is_binary(words_[at_ + 1].text)) return binary();
    const std::string& op = words_[at_].text;
    if (op.size() == 2 && op[0] == '-' && at_ + 1 < last_) {
      at_ += 2;
      const ShellWord& word = words_[at_ - 1];
      if ((op != "-z" && op != "-n") || !word.known) return std::nullopt;
      return word.text.empty() == (op == "-z");
    }
    const ShellWord& word = words_[at_++];
    return word.known ? Outcome(!word.text.empty()) : std::nullopt;
  }
  static bool is_binary(std::string_view op) {
    static constexpr std::array<std::string_view, 9> kBinary{"=",   "==",  "!=",  "-eq", "-ne",
                                                             "-gt", "-lt", "-ge", "-le"};
    for (const std::string_view known : kBinary) {
      if (op == known) return true;
    }
    return false;
  }
  Outcome binary() {
    const ShellWord &left = words_[at_], &right = words_[at_ + 2];
    const std::string& op = words_[at_ + 1].text;
    at_ += 3;
    if (!left.known || !right.known) return std::nullopt;
    if (op[0] != '-') {
      const Outcome same = patterns_ ? shell_matches(right, left) : left.text == right.text;
      return op == "!=" ? negated(same) : same;
    }
    const auto a = whole(left.text), b = whole(right.text);
    if (!a || !b) return std::nullopt;
    if (op == "-eq") return *a == *b;
    if (op == "-ne") return *a != *b;
    if (op == "-gt") return *a > *b;
    if (op == "-lt") return *a < *b;
    return op == "-ge" ? *a >= *b : *a <= *b;
  }

  const ShellCommand& words_;
  std::size_t at_, last_;
  bool patterns_, malformed_ = false;
  int depth_ = 0;
};

// python3 -c 'import torch_npu'
bool imports_torch_npu(const ShellCommand& command) {
  if (command.size() != 3 || command[1].text != "-c") return false;
  if (command[0].text != "python" && command[0].text != "python3") return false;
  const std::string_view line = command[2].text;
  return line == "import torch_npu" || line.starts_with("import torch_npu;");
}

}  // namespace

bool names_gpus(std::string_view text) {
  std::string low(text);
  for (char& c : low) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return low == "gpu" || low == "cuda" || low == "nvidia";
}

bool asks_for_gpus(const ShellCommand& test) {
  return test.size() == 5 && !test[1].known && (test[2].text == "=" || test[2].text == "==") &&
         names_gpus(test[3].text);
}

std::string what_a_run_tells(const ShellCommand& command) {
  std::string text;
  for (const ShellWord& word : command) {
    if (!word.known) return word.unknown;
    text += (text.empty() ? "" : " ") + word.text;
  }
  return "whether `" + (text.size() > 60 ? text.substr(0, 57) + "..." : text) + "` succeeds";
}

std::optional<bool> shell_matches(const ShellWord& pattern, const ShellWord& text) {
  if (!pattern.known) return std::nullopt;
  if (pattern.text == "*") return true;
  if (!text.known || pattern.text.find('[') != std::string::npos ||
      pattern.text.size() > kMostPattern || text.text.size() > kMostPattern) {
    return std::nullopt;
  }
  return glob(pattern.text, text.text);
}

std::optional<bool> shell_outcome(const ShellCommand& command) {
  if (command.empty()) return true;
  if (command[0].text == "!") {
    return negated(shell_outcome(ShellCommand(command.begin() + 1, command.end())));
  }
  const std::string& name = command[0].text;
  if (name == "true" || name == ":") return true;
  if (name == "false" || imports_torch_npu(command)) return false;
  if (name == "test") return Test(command, 1, command.size(), false).value();
  const bool two = name == "[[";
  if ((two || name == "[") && command.back().text == (two ? "]]" : "]")) {
    return Test(command, 1, command.size() - 1, two).value();
  }
  return std::nullopt;
}

}  // namespace tessera
