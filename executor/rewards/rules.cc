#include "executor/rewards/rules.h"

#include <algorithm>

#include "executor/data/python_text.h"

namespace tessera {
namespace {

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

bool any_source(std::string_view) { return true; }

/// A table row of a rule of response and truth.
template <double (*rule)(std::string_view, std::string_view)>
double of_truth(const RewardText& text) {
  return rule(text.response, text.truth);
}

/// The same of what a rule finds in the response.
template <std::optional<std::string> (*find)(std::string_view)>
ScoreDetail with_answer(const RewardText& text) {
  return {.answer = find(text.response), .accuracy = {}};
}

/// Sources of verl 0.9.1's utils/reward_score/__init__.py whose functions are rules here.
struct SourceRule {
  std::string_view data_source, rule;
};
constexpr SourceRule kSources[] = {{"openai/gsm8k", "gsm8k"},
                                   {"lighteval/MATH", "math"},
                                   {"DigitalLearningGmbH/MATH-lighteval", "math"},
                                   {"HuggingFaceH4/MATH-500", "math"},
                                   {"math_dapo", "math_dapo"},
                                   {"math", "math_dapo"},
                                   {"math_dapo_reasoning", "math_dapo"}};

constexpr RewardRule kRules[] = {
    {"fraction", of_truth<fraction_reward>, any_source},
    {"exact", of_truth<exact_reward>, any_source},
    {"numeric", of_truth<numeric_reward>, any_source, with_answer<gsm8k_flexible_answer>},
    {"gsm8k", of_truth<gsm8k_reward>, any_source, with_answer<gsm8k_answer>},
    {"gsm8k_flexible", of_truth<gsm8k_flexible_reward>, any_source,
     with_answer<gsm8k_flexible_answer>},
    {"math", of_truth<math_reward>, any_source, with_answer<math_answer>},
    {"math_dapo", of_truth<math_dapo_reward>, any_source,
     [](const RewardText& text) {
       return ScoreDetail{.answer = math_dapo_answer(text.response),
                          .accuracy = math_dapo_reward(text.response, text.truth) > 0 ? 1.0 : 0.0};
     }},
    {"format", [](const RewardText& text) { return format_reward(text.response); }, any_source},
    {"by_data_source",
     [](const RewardText& text) {
       const RewardRule* rule = rule_of_data_source(text.data_source);
       return rule == nullptr ? 0.0 : rule->score(text);
     },
     [](std::string_view source) { return rule_of_data_source(source) != nullptr; },
     [](const RewardText& text) {
       const RewardRule* rule = rule_of_data_source(text.data_source);
       return rule == nullptr ? ScoreDetail{} : detail_of(*rule, text);
     }}};

}  // namespace

ScoreDetail detail_of(const RewardRule& rule, const RewardText& text) {
  ScoreDetail detail = rule.detail == nullptr ? ScoreDetail{} : rule.detail(text);
  detail.plain_number = !detail.accuracy;
  return detail;
}

double fraction_reward(std::string_view response, std::string_view truth) {
  return fraction_in_place(code_points(response), code_points(truth));
}

double fraction_reward(std::span<const std::int32_t> response,
                       std::span<const std::int32_t> truth) {
  return fraction_in_place(response, truth);
}

double exact_reward(std::string_view response, std::string_view truth) {
  return trimmed(response) == trimmed(truth) ? 1.0 : 0.0;
}

double format_reward(std::string_view response) {
  constexpr std::string_view kOpen = "<think>", kClose = "</think>", kBox = "\\boxed{";
  if (!response.starts_with(kOpen)) return 0;
  const std::size_t close = response.find(kClose, kOpen.size());
  if (close == std::string_view::npos) return 0;
  const std::size_t box = response.find(kBox, close + kClose.size());
  if (box == std::string_view::npos) return 0;
  return response.find('}', box + kBox.size()) == std::string_view::npos ? 0.0 : 1.0;
}

const RewardRule* rule_of_data_source(std::string_view data_source) {
  if (data_source.starts_with("aime")) return reward_rule("math_dapo");
  const auto* row = std::ranges::find(kSources, data_source, &SourceRule::data_source);
  return row == std::end(kSources) ? nullptr : reward_rule(row->rule);
}

std::span<const RewardRule> reward_rules() { return kRules; }

const RewardRule* reward_rule(std::string_view name) {
  const auto* row = std::ranges::find(kRules, name, &RewardRule::name);
  return row == std::end(kRules) ? nullptr : row;
}

std::vector<std::string> reward_rule_names() {
  std::vector<std::string> names;
  for (const RewardRule& rule : kRules) names.emplace_back(rule.name);
  return names;
}

}  // namespace tessera
