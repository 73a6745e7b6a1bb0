// DAPO's rule for mathematics: verl 0.9.1, utils/reward_score/math_dapo.py, function by function.
#include <algorithm>
#include <optional>
#include <string>

#include "executor/data/python_text.h"
#include "executor/rewards/rules.h"

namespace tessera {
namespace {

using Text = std::u32string;
using View = std::u32string_view;

constexpr std::size_t kLooksAt = 300, kLooksForBoxAt = 100;  // characters
constexpr View kInvalid = U"[INVALID]";

struct Substitution {
  View from, to;
};
constexpr Substitution kSubstitutions[] = {{U"an ", U""},          {U"a ", U""},
                                           {U".$", U"$"},          {U"\\$", U""},
                                           {U"\\ ", U""},          {U" ", U""},
                                           {U"mbox", U"text"},     {U",\\text{and}", U","},
                                           {U"\\text{and}", U","}, {U"\\text{m}", U"\\text{}"}};
constexpr View kRemoved[] = {
    U"square",     U"ways",       U"integers",  U"dollars",      U"mph",
    U"inches",     U"hours",      U"km",        U"units",        U"\\ldots",
    U"sue",        U"points",     U"feet",      U"minutes",      U"digits",
    U"cents",      U"degrees",    U"cm",        U"gm",           U"pounds",
    U"meters",     U"meals",      U"edges",     U"students",     U"childrentickets",
    U"multiples",  U"\\text{s}",  U"\\text{.}", U"\\text{\ns}",  U"\\text{}^2",
    U"\\text{}^3", U"\\text{\n}", U"\\text{}",  U"\\mathrm{th}", U"^\\circ",
    U"^{\\circ}",  U"\\;",        U",\\!",      U"{,}",          U"\"",
    U"\\dots"};

/// re.sub(r"(.*?)(\$)(.*?)(\$)(.*)", "$\\3$"): of each line what its first two dollar signs hold.
Text first_formula_of_lines(View text) {
  Text result;
  bool first = true;
  for (const Text& line : split_at(text, U"\n")) {
    if (!first) result += U'\n';
    first = false;
    const std::size_t open = line.find(U'$');
    const std::size_t close = open == line.npos ? line.npos : line.find(U'$', open + 1);
    result += close == line.npos ? line : U"$" + line.substr(open + 1, close - open - 1) + U"$";
  }
  return result;
}

/// Replaces `opening`inner} by inner wherever the brace stands on the same line: the next one, or
/// with `greedy` the last of the line.
Text unwrapped(View text, View opening, bool greedy = false) {
  Text result;
  std::size_t at = 0;
  for (std::size_t found = text.find(opening); found != text.npos; found = text.find(opening, at)) {
    const std::size_t inner = found + opening.size();
    const View line = text.substr(inner, text.substr(inner).find(U'\n'));
    const std::size_t brace = greedy ? line.rfind(U'}') : line.find(U'}');
    if (brace == line.npos) {
      result.append(text.substr(at, found + 1 - at));
      at = found + 1;
      continue;
    }
    result.append(text.substr(at, found - at)).append(line.substr(0, brace));
    at = inner + brace + 1;
  }
  return result.append(text.substr(at));
}

/// re.sub(r"(frac)([^{])(.)", "frac{\\2}{\\3}"): \fracab -> \frac{a}{b}.
Text with_fraction_braces(View text) {
  constexpr View kFrac = U"frac";
  Text result;
  std::size_t at = 0;
  for (std::size_t found = text.find(kFrac); found != text.npos; found = text.find(kFrac, at)) {
    const std::size_t first = found + kFrac.size();
    if (first + 1 >= text.size() || text[first] == U'{' || text[first + 1] == U'\n') {
      result.append(text.substr(at, found + 1 - at));
      at = found + 1;
      continue;
    }
    result.append(text.substr(at, first - at));
    result += Text(U"{") + text[first] + U"}{" + text[first + 1] + U"}";
    at = first + 2;
  }
  return result.append(text.substr(at));
}

/// re.sub(r"(sqrt)([^{])", "sqrt{\\2}").
Text with_root_braces(View text) {
  constexpr View kRoot = U"sqrt";
  Text result;
  std::size_t at = 0;
  for (std::size_t found = text.find(kRoot); found != text.npos; found = text.find(kRoot, at)) {
    const std::size_t first = found + kRoot.size();
    result.append(text.substr(at, first - at));
    at = first;
    if (first >= text.size() || text[first] == U'{') continue;
    result += Text(U"{") + text[first] + U"}";
    at = first + 1;
  }
  return result.append(text.substr(at));
}

/// normalize_final_answer.
Text normal_answer(View answer) {
  Text text = split_at(answer, U"=").back();
  for (const auto& [from, to] : kSubstitutions) text = replaced(text, from, to);
  for (const View expression : kRemoved) text = replaced(text, expression, U"");
  text = first_formula_of_lines(text);
  for (const View opening : {U"\\text{", U"\\textbf{", U"\\overline{"}) {
    text = unwrapped(text, opening);
  }
  text = unwrapped(text, U"\\boxed{", /*greedy=*/true);
  text = with_root_braces(with_fraction_braces(text));
  text = replaced(text, U"$", U"");
  const Text digits = replaced(text, U",", U"");
  if (!digits.empty() && std::ranges::all_of(digits, is_python_digit)) text = digits;
  return Text(stripped(text));
}

/// Whether `c` matches `lower` where case does not count; the long s folds to s.
bool same_letter(char32_t c, char32_t lower) {
  const char32_t folded = c >= U'A' && c <= U'Z' ? c + 32 : c == U'\u017f' ? U's' : c;
  return folded == lower;
}

struct Match {
  std::size_t end;
  View answer;
};

/// (?i)Answer\s*:\s*([^\n]+) at `at`, as a backtracking matcher finds it.
std::optional<Match> answer_at(View text, std::size_t at) {
  constexpr View kWord = U"answer";
  if (text.size() - at < kWord.size()) return std::nullopt;
  for (std::size_t i = 0; i < kWord.size(); ++i) {
    if (!same_letter(text[at + i], kWord[i])) return std::nullopt;
  }
  at += kWord.size();
  while (at < text.size() && is_python_space(text[at])) ++at;
  if (at == text.size() || text[at] != U':') return std::nullopt;
  const std::size_t after_colon = ++at;
  while (at < text.size() && is_python_space(text[at])) ++at;
  if (at == text.size()) {  // nothing but white space: its last character that ends no line
    while (at > after_colon && text[at - 1] == U'\n') --at;
    if (at == after_colon) return std::nullopt;
    return Match{at, text.substr(at - 1, 1)};
  }
  const std::size_t end = std::min(text.size(), text.find(U'\n', at));
  return Match{end, text.substr(at, end - at)};
}

View last_stated_answer(View text) {
  View last = kInvalid;
  for (std::size_t at = 0; at < text.size();) {
    const auto match = answer_at(text, at);
    if (match) last = match->answer;
    at = match ? match->end : at + 1;
  }
  return last;
}

/// What the last \boxed{} holds, whose braces must match.
std::optional<View> boxed_answer(View text) {
  constexpr View kBoxed = U"\\boxed{";
  const std::size_t begin = text.rfind(kBoxed);
  if (begin == text.npos) return std::nullopt;
  int open = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (text[i] == U'{') ++open;
    if (text[i] == U'}' && --open == 0) {
      return text.substr(begin + kBoxed.size(), i - begin - kBoxed.size());
    }
  }
  return std::nullopt;
}

bool is_right(View response, View truth) {
  const Text stated = normal_answer(last_stated_answer(response));
  const bool same = stated == normal_answer(truth);
  if (stated != kInvalid) return same;
  const auto box = boxed_answer(last_characters(response, kLooksForBoxAt));
  return box ? *box == truth : same;
}

}  // namespace

std::optional<std::string> math_dapo_answer(std::string_view response) {
  const Text all = code_points(response);
  const View text = last_characters(all, kLooksAt);
  const Text stated = normal_answer(last_stated_answer(text));
  if (stated != kInvalid) return utf8_of(stated);
  const auto box = boxed_answer(last_characters(text, kLooksForBoxAt));
  return utf8_of(box ? *box : View(stated));
}

double math_dapo_reward(std::string_view response, std::string_view truth) {
  const Text text = code_points(response);
  return is_right(last_characters(text, kLooksAt), code_points(truth)) ? 1.0 : -1.0;
}

}  // namespace tessera
