// Rewards by rule: pure functions of a response and its ground truth, by name.
//
// Rules that verl has give what verl 0.9.1's utils/reward_score gives, character by character;
// tests/executor/rewards/verl_scores.json holds verl's own answers. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// What a rule looks at, as UTF-8.
struct RewardText {
  std::string_view data_source, response, truth;
};

/// What a score was given for, where its function says so: a validation counts majorities of it.
struct ScoreDetail {
  std::optional<std::string> answer;   // that was found in the response
  std::optional<double> accuracy;      // verl's "acc", where the function says one
  std::map<std::string, double> more;  // other numbers beside the score, for validations
  bool plain_number = false;           // the function gives a number, and no map with a score in it
};

/// What verl's reward managers report as "acc" of a score: a plain number is its own.
inline std::optional<double> accuracy_of(double score, const ScoreDetail& detail) {
  return detail.plain_number ? score : detail.accuracy;
}

/// A rule without an accuracy of its own gives a plain number, as its function in verl does.
struct RewardRule {
  std::string_view name;
  double (*score)(const RewardText& text);
  /// Whether there is a score for prompts of this source.
  bool (*knows)(std::string_view data_source);
  /// nullptr = the rule looks for no answer.
  ScoreDetail (*detail)(const RewardText& text) = nullptr;
};

/// What the rule's score is given for.
ScoreDetail detail_of(const RewardRule& rule, const RewardText& text);

/// Share of the truth's characters (UTF-8 code points) that the response has in the same place;
/// what follows in the response does not count. An empty truth gives 1 for an empty response.
double fraction_reward(std::string_view response, std::string_view truth);
/// The fraction reward over token ids.
double fraction_reward(std::span<const std::int32_t> response, std::span<const std::int32_t> truth);

/// 1 when the response without leading and trailing white space is the truth, else 0.
double exact_reward(std::string_view response, std::string_view truth);

/// 1 when the last number of the response (within its last 300 characters) has the truth's value, a
/// millionth of it aside; thousands' commas do not count. 0 where either is no number. Numbers are
/// found and read as in verl's gsm8k.py ("flexible") and prime_math/grader.py (is_digit).
double numeric_reward(std::string_view response, std::string_view truth);

/// verl's gsm8k.py: 1 when the number after the last "#### " of the last 300 characters is the
/// truth, letter by letter; flexible: the last number at all.
double gsm8k_reward(std::string_view response, std::string_view truth);
double gsm8k_flexible_reward(std::string_view response, std::string_view truth);

/// verl's math_reward.py (Hendrycks et al. 2021): 1 when the last \boxed{} of the response equals
/// the truth after both are normalized: fractions, roots, units, degrees, percent and dollar signs.
double math_reward(std::string_view response, std::string_view truth);

/// verl's math_dapo.py: 1 when the last "Answer: ..." of the last 300 characters equals the truth
/// after both are normalized as Minerva's (Lewkowycz et al. 2022), where there is none the last
/// \boxed{} of the last 100; else -1.
double math_dapo_reward(std::string_view response, std::string_view truth);

/// The answer that gsm8k, gsm8k_flexible (numeric, too), math or math_dapo compares; none = not
/// found. verl's "pred" where verl has it (math_dapo), else as verl's functions find it.
std::optional<std::string> gsm8k_answer(std::string_view response);
std::optional<std::string> gsm8k_flexible_answer(std::string_view response);
std::optional<std::string> math_answer(std::string_view response);
std::optional<std::string> math_dapo_answer(std::string_view response);

/// verl's geo3k.py format_reward: 1 when the response is <think>...</think>...\boxed{...}...
double format_reward(std::string_view response);

/// The rule that verl's default_compute_score takes for a data source, or nullptr.
const RewardRule* rule_of_data_source(std::string_view data_source);

/// All of them: fraction, exact, numeric, gsm8k, gsm8k_flexible, math, math_dapo, format and
/// by_data_source.
std::span<const RewardRule> reward_rules();
/// The rule of a name, or nullptr.
const RewardRule* reward_rule(std::string_view name);
std::vector<std::string> reward_rule_names();

}  // namespace tessera
