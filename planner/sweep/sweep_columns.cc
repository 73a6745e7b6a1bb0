#include "planner/sweep/sweep_columns.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "cost_models/documents/spelling/edit_distance.h"

namespace tessera {
namespace {

// The words of a column's name: lower case, without separators and what only says "how many".
std::string words_of(std::string_view name) {
  std::string words;
  for (const char c : name) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter) != 0) words += static_cast<char>(std::tolower(letter));
  }
  constexpr std::array<std::string_view, 3> kBehind = {"size", "degree", "stage"};
  for (const std::string_view behind : kBehind) {
    if (words.size() > behind.size() && words.ends_with(behind)) {
      words.resize(words.size() - behind.size());
    }
  }
  constexpr std::string_view kBefore = "num";
  if (words.size() > kBefore.size() && words.starts_with(kBefore)) words.erase(0, kBefore.size());
  return words;
}

// "microbatches" as "microbatch"; "tps" is not tp.
std::string singular(const std::string& words) {
  if (words.size() > 5 && words.ends_with("ches")) return words.substr(0, words.size() - 2);
  return words.size() > 3 && words.ends_with('s') ? words.substr(0, words.size() - 1) : words;
}

}  // namespace

std::optional<std::string> resembled_column(std::string_view name,
                                            std::span<const std::string> known) {
  const std::string words = words_of(name);
  for (const std::string& column : known) {
    const std::string of_column = words_of(column);
    if (singular(words) == singular(of_column)) return column;
  }
  for (const std::string& column : known) {
    const std::string of_column = words_of(column);
    const std::size_t least = std::min(words.size(), of_column.size());
    const std::size_t most = least >= 8 ? 3 : least >= 5 ? 2 : 0;
    if (edit_distance(words, of_column, most) < most) return column;
  }
  return std::nullopt;
}

}  // namespace tessera
