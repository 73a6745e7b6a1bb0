// Scalars as Hydra's grammar of overrides reads them (omegaconf/grammar/OmegaConfGrammarLexer.g4).
#include <algorithm>
#include <charconv>
#include <cmath>

#include "cost_models/documents/printed.h"
#include "planner/interop/config/config_values.h"

namespace tessera {
namespace {

std::string_view trimmed(std::string_view word) {
  while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
  while (!word.empty() && (word.back() == ' ' || word.back() == '\r')) word.remove_suffix(1);
  return word;
}

// Backslashes escape the quote, and themselves before it or the end; elsewhere they are plain.
std::string unescaped(std::string_view inside, char quote) {
  std::string text;
  for (std::size_t at = 0; at < inside.size();) {
    if (inside[at] != '\\') {
      text += inside[at++];
      continue;
    }
    const std::size_t end = std::min(inside.find_first_not_of('\\', at), inside.size());
    const std::size_t count = end - at;
    const bool quoted = end < inside.size() && inside[end] == quote;
    at = end;
    if (!quoted && end < inside.size()) {
      text.append(count, '\\');
      continue;
    }
    text.append(count / 2, '\\');
    if (quoted && count % 2 == 1) text += inside[at++];
  }
  return text;
}

template <class Number>
std::optional<Number> number_in(const std::string& digits) {
  Number number{};
  const char* const end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, number);
  if (error != std::errc{} || at != end) return std::nullopt;
  return number;
}

}  // namespace

Node override_value(std::string_view word) {
  word = trimmed(word);
  if (word.empty()) return node_of(std::string_view{});
  const char quote = word.front();
  if (word.size() >= 2 && (quote == '\'' || quote == '"') && word.back() == quote) {
    return node_of(std::string_view(unescaped(word.substr(1, word.size() - 2), quote)));
  }
  const std::string small = lower_case(word);
  if (small == "true" || small == "false") return node_of(small == "true");
  if (small == "null") return {};
  std::string digits(word);
  if (word.front() != '_' && word.back() != '_') std::erase(digits, '_');
  if (const auto integer = number_in<std::int64_t>(digits)) return node_of(*integer);
  const auto number = number_in<double>(digits);
  return number && std::isfinite(*number) ? node_of(*number) : node_of(word);
}

}  // namespace tessera
