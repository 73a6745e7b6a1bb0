// The rule of the MATH data set: verl 0.9.1, utils/reward_score/math_reward.py, function by
// function. What an assertion or an index stops there is no value here (nullopt).
#include <optional>
#include <string>

#include "executor/data/python_text.h"
#include "executor/rewards/rules.h"

namespace tessera {
namespace {

using Text = std::u32string;
using MaybeText = std::optional<std::u32string>;

constexpr std::u32string_view kBoxedSpace = U"\\boxed ", kBoxed = U"\\boxed";

/// last_boxed_only_string and remove_boxed: what the last box holds. "\boxed x$" ends at the dollar
/// sign, "\boxed{x}" at its brace; an \fbox is found and then stops remove_boxed.
MaybeText boxed_answer(const Text& text) {
  if (text.find(kBoxedSpace) != text.npos) {
    return split_at(split_at(text, kBoxedSpace).back(), U"$").front();
  }
  const std::size_t begin = text.rfind(kBoxed);
  if (begin == text.npos) return std::nullopt;
  int open = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (text[i] == U'{') ++open;
    if (text[i] != U'}' || --open != 0) continue;
    const std::size_t inner = begin + kBoxed.size() + 1;
    if (text[inner - 1] != U'{') return std::nullopt;
    return text.substr(inner, i - inner);
  }
  return std::nullopt;
}

/// \frac1b -> \frac{1}{b}, \frac12 -> \frac{1}{2}, \frac1{72} -> \frac{1}{72}.
MaybeText fix_fracs(const Text& text) {
  const auto parts = split_at(text, U"\\frac");
  Text fixed = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const Text& part = parts[i];
    if (part.empty()) return std::nullopt;
    fixed += U"\\frac";
    if (part[0] == U'{') {
      fixed += part;
      continue;
    }
    if (part.size() < 2) return text;
    fixed += Text(U"{") + part[0] + U"}";
    fixed += part[1] == U'{' ? Text(1, part[1]) : Text(U"{") + part[1] + U"}";
    fixed += part.substr(2);
  }
  return fixed;
}

/// A number as str(int()) writes it: no sign but -, no leading zero. Python reads 4,300 digits.
bool is_plain_integer(std::u32string_view text) {
  if (text.starts_with(U'-'))
    text.remove_prefix(1);
  else if (text == U"0")
    return true;
  if (text.empty() || text.size() > 4300 || text[0] == U'0') return false;
  for (const char32_t c : text) {
    if (c < U'0' || c > U'9') return false;
  }
  return true;
}

/// 3/4 -> \frac{3}{4}, where both are whole numbers.
Text fix_a_slash_b(const Text& text) {
  const auto parts = split_at(text, U"/");
  if (parts.size() != 2 || !is_plain_integer(parts[0]) || !is_plain_integer(parts[1])) return text;
  return U"\\frac{" + parts[0] + U"}{" + parts[1] + U"}";
}

/// What stands before "\text{ ", which only units follow; more than one stops verl.
MaybeText remove_right_units(const Text& text) {
  const auto parts = split_at(text, U"\\text{ ");
  if (parts.size() > 2) return std::nullopt;
  return parts[0];
}

/// \sqrt3 -> \sqrt{3}.
MaybeText fix_sqrt(const Text& text) {
  const auto parts = split_at(text, U"\\sqrt");
  Text fixed = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const Text& part = parts[i];
    if (part.empty()) return std::nullopt;
    fixed += U"\\sqrt";
    fixed += part[0] == U'{' ? part : Text(U"{") + part[0] + U"}" + part.substr(1);
  }
  return fixed;
}

/// strip_string: the normal form in which two answers are compared.
MaybeText normal_form(Text text) {
  struct Replacement {
    std::u32string_view from, to;
  };
  static constexpr Replacement kBeforeUnits[] = {
      {U"\n", U""},        {U"\\!", U""},    {U"\\\\", U"\\"},  {U"tfrac", U"frac"},
      {U"dfrac", U"frac"}, {U"\\left", U""}, {U"\\right", U""}, {U"^{\\circ}", U""},
      {U"^\\circ", U""},   {U"\\$", U""}};
  for (const auto& [from, to] : kBeforeUnits) text = replaced(text, from, to);
  const MaybeText value = remove_right_units(text);
  if (!value) return std::nullopt;
  text = *value;
  static constexpr Replacement kAfterUnits[] = {
      {U"\\\\%", U""}, {U"\\%", U""}, {U" .", U" 0."}, {U"{.", U"{0."}};
  for (const auto& [from, to] : kAfterUnits) text = replaced(text, from, to);
  if (text.empty()) return text;
  if (text[0] == U'.') text.insert(0, 1, U'0');
  const auto sides = split_at(text, U"=");  // "k = 3" is 3
  if (sides.size() == 2 && sides[0].size() <= 2) text = sides[1];
  const MaybeText roots = fix_sqrt(text);
  if (!roots) return std::nullopt;
  const MaybeText fractions = fix_fracs(replaced(*roots, U" ", U""));
  if (!fractions) return std::nullopt;
  return fix_a_slash_b(*fractions == U"0.5" ? U"\\frac{1}{2}" : *fractions);
}

}  // namespace

std::optional<std::string> math_answer(std::string_view response) {
  const MaybeText answer = boxed_answer(code_points(response));
  if (!answer) return std::nullopt;
  return utf8_of(normal_form(*answer).value_or(*answer));
}

double math_reward(std::string_view response, std::string_view truth) {
  const MaybeText answer = boxed_answer(code_points(response));
  if (!answer) return 0;
  const Text right = code_points(truth);
  const MaybeText a = normal_form(*answer), b = normal_form(right);
  const bool same = a && b ? *a == *b : *answer == right;
  return same ? 1.0 : 0.0;
}

}  // namespace tessera
