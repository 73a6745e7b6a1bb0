// Built-in rule rewards: pure functions of a response and the ground truth, in [0, 1].
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// Share of the truth's characters (UTF-8 code points) that the response has in the same place;
/// what follows in the response does not count. An empty truth gives 1 for an empty response.
double fraction_reward(std::string_view response, std::string_view truth);

/// The fraction reward over token ids.
double fraction_reward(std::span<const std::int32_t> response, std::span<const std::int32_t> truth);

/// 1 when the response without leading and trailing white space is the truth, else 0.
double exact_reward(std::string_view response, std::string_view truth);

using RewardRule = std::function<double(std::string_view response, std::string_view truth)>;

/// The rule of a name ("fraction", "exact"), or nothing; reward_rule_names() lists them.
std::optional<RewardRule> reward_rule(std::string_view name);
std::vector<std::string> reward_rule_names();

}  // namespace tessera
