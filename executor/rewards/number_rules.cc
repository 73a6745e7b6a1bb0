// Rules that look for a number: verl 0.9.1, utils/reward_score/gsm8k.py, and is_digit of
// prime_math/grader.py.
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>

#include "executor/data/python_text.h"
#include "executor/rewards/rules.h"

namespace tessera {
namespace {

constexpr std::size_t kLooksAt = 300;  // characters, _SOLUTION_CLIP_CHARS
constexpr double kTolerance = 1e-6;    // of a number's value

bool is_number_character(char32_t c) { return (c >= U'0' && c <= U'9') || c == U'.' || c == U','; }

/// Where the number that begins at `from` (-?[0-9.,]+) ends, or `from` where there is none.
std::size_t end_of_number(std::u32string_view text, std::size_t from) {
  std::size_t at = from;
  if (at < text.size() && text[at] == U'-') ++at;
  const std::size_t first = at;
  while (at < text.size() && is_number_character(text[at])) ++at;
  return at == first ? from : at;
}

/// Numbers of the text from the left, each after `marker`.
std::vector<std::u32string> numbers_after(std::u32string_view marker, std::u32string_view text) {
  std::vector<std::u32string> numbers;
  for (std::size_t at = text.find(marker); at != text.npos; at = text.find(marker, at)) {
    const std::size_t begin = at + marker.size(), end = end_of_number(text, begin);
    if (end > begin) numbers.emplace_back(text.substr(begin, end - begin));
    at = end > begin ? end : at + 1;
    if (at > text.size()) break;
  }
  return numbers;
}

std::optional<std::u32string> strict_answer(std::u32string_view response) {
  const auto numbers = numbers_after(U"#### ", last_characters(response, kLooksAt));
  if (numbers.empty()) return std::nullopt;
  return replaced(numbers.back(), U",", U"");
}

/// The last number that is more than a full stop, else the first that is not.
std::optional<std::u32string> flexible_answer(std::u32string_view response) {
  const auto numbers = numbers_after(U"", last_characters(response, kLooksAt));
  if (numbers.empty()) return std::nullopt;
  for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) {
    if (*number != U".") return *number;
  }
  return numbers.front();
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Python's float() of ASCII text, infinities and NaN aside: [+-]digits[.digits][e[+-]digits] with
/// single underscores between digits.
std::optional<double> python_float(std::string_view text) {
  std::string plain;
  std::size_t at = 0;
  const auto sign = [&] {
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) plain += text[at++];
  };
  const auto digits = [&] {
    const std::size_t from = plain.size();
    for (; at < text.size(); ++at) {
      const bool joins = text[at] == '_' && plain.size() > from && is_digit(plain.back()) &&
                         at + 1 < text.size() && is_digit(text[at + 1]);
      if (!joins && !is_digit(text[at])) break;
      if (!joins) plain += text[at];
    }
    return plain.size() - from;
  };
  sign();
  std::size_t found = digits();
  if (at < text.size() && text[at] == '.') {
    plain += text[at++];
    found += digits();
  }
  if (found == 0) return std::nullopt;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    plain += text[at++];
    sign();
    if (digits() == 0) return std::nullopt;
  }
  if (at != text.size()) return std::nullopt;
  return std::strtod(plain.c_str(), nullptr);
}

/// is_digit of verl's prime_math/grader.py: commas of thousands, "{,}" as LaTeX writes them, do not
/// count.
std::optional<double> number_of(std::u32string text) {
  const bool latex = text.find(U"{,}") != text.npos;
  text = replaced(text, latex ? U"{,}" : U",", U"");
  std::string ascii;
  for (const char32_t c : stripped(text)) {
    const int digit = decimal_value(c);
    if (c > 127 && digit < 0) return std::nullopt;
    ascii += static_cast<char>(digit < 0 ? c : U'0' + static_cast<char32_t>(digit));
  }
  return python_float(ascii);
}

/// math.isclose with a relative tolerance alone.
bool is_close(double a, double b) {
  if (a == b) return true;
  if (std::isinf(a) || std::isinf(b)) return false;
  return std::abs(a - b) <= kTolerance * std::max(std::abs(a), std::abs(b));
}

}  // namespace

std::optional<std::string> gsm8k_answer(std::string_view response) {
  const auto answer = strict_answer(code_points(response));
  return answer ? std::optional(utf8_of(*answer)) : std::nullopt;
}

std::optional<std::string> gsm8k_flexible_answer(std::string_view response) {
  const auto answer = flexible_answer(code_points(response));
  return answer ? std::optional(utf8_of(*answer)) : std::nullopt;
}

double gsm8k_reward(std::string_view response, std::string_view truth) {
  const auto answer = strict_answer(code_points(response));
  return answer && *answer == code_points(truth) ? 1.0 : 0.0;
}

double gsm8k_flexible_reward(std::string_view response, std::string_view truth) {
  const auto answer = flexible_answer(code_points(response));
  return answer && *answer == code_points(truth) ? 1.0 : 0.0;
}

double numeric_reward(std::string_view response, std::string_view truth) {
  const auto answer = flexible_answer(code_points(response));
  const auto mine = answer ? number_of(*answer) : std::nullopt;
  const auto right = number_of(code_points(truth));
  return mine && right && is_close(*mine, *right) ? 1.0 : 0.0;
}

}  // namespace tessera
