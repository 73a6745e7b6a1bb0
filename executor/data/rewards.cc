#include "executor/data/rewards.h"

#include <algorithm>

#include "executor/data/unicode.h"

namespace tessera {
namespace {

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> result;
  for (std::size_t at = 0; at < text.size();) {
    int bad = 0;
    const int length = code_point_length(text, at, bad);
    const auto bytes = static_cast<std::size_t>(length > 0 ? length : bad);
    result.push_back(text.substr(at, bytes));
    at += bytes;
  }
  return result;
}

template <class Sequence>
double fraction_in_place(const Sequence& response, const Sequence& truth) {
  if (truth.empty()) return response.empty() ? 1.0 : 0.0;
  std::size_t right = 0;
  for (std::size_t i = 0; i < std::min(response.size(), truth.size()); ++i) {
    right += response[i] == truth[i] ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(truth.size());
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

}  // namespace

double fraction_reward(std::string_view response, std::string_view truth) {
  return fraction_in_place(characters(response), characters(truth));
}

double fraction_reward(std::span<const std::int32_t> response,
                       std::span<const std::int32_t> truth) {
  return fraction_in_place(response, truth);
}

double exact_reward(std::string_view response, std::string_view truth) {
  return trimmed(response) == trimmed(truth) ? 1.0 : 0.0;
}

std::optional<RewardRule> reward_rule(std::string_view name) {
  if (name == "fraction") {
    return [](std::string_view response, std::string_view truth) {
      return fraction_reward(response, truth);
    };
  }
  if (name == "exact") return exact_reward;
  return std::nullopt;
}

std::vector<std::string> reward_rule_names() { return {"fraction", "exact"}; }

}  // namespace tessera
