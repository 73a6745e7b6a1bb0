#include "planner/interop/shell/shell_arithmetic.h"

#include <cctype>

namespace tessera {
namespace {

constexpr int kMostDepth = 32;

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class Arithmetic {
 public:
  Arithmetic(std::string_view text, const ShellLookup& lookup, int depth)
      : text_(text), lookup_(lookup), depth_(depth) {}

  std::optional<std::int64_t> value() {
    const auto result = choice();
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
  bool take(std::string_view op) {
    skip();
    if (text_.substr(at_, op.size()) != op) return false;
    at_ += op.size();
    return true;
  }
  // a ? b : c
  std::optional<std::int64_t> choice() {
    const auto condition = comparison();
    if (!condition || !take('?')) return condition;
    if (++depth_ > kMostDepth) return std::nullopt;
    const auto yes = choice();
    if (!take(':')) return std::nullopt;
    const auto no = choice();
    --depth_;
    return *condition != 0 ? yes : no;
  }
  std::optional<std::int64_t> comparison() {
    const auto left = sum();
    if (!left) return left;
    static constexpr std::string_view kOps[] = {"==", "!=", "<=", ">=", "<", ">"};
    for (const std::string_view op : kOps) {
      if (!take(op)) continue;
      const auto right = sum();
      if (!right) return right;
      const std::int64_t a = *left, b = *right;
      const bool holds = op == "=="   ? a == b
                         : op == "!=" ? a != b
                         : op == "<=" ? a <= b
                         : op == ">=" ? a >= b
                         : op == "<"  ? a < b
                                      : a > b;
      return holds ? 1 : 0;
    }
    return left;
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
      const auto inner = choice();
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
  const ShellLookup& lookup_;
  int depth_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::int64_t> shell_arithmetic(std::string_view text, const ShellLookup& lookup) {
  return Arithmetic(text, lookup, 0).value();
}

}  // namespace tessera
