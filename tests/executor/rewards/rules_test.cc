#include "executor/rewards/rules.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tessera {
namespace {

using nlohmann::json;

json verl_scores() {
  std::ifstream file(TESSERA_SOURCE_DIR "/tests/executor/rewards/verl_scores.json");
  return json::parse(file);
}

class VerlScores : public testing::TestWithParam<const char*> {};

// Oracle: verl 0.9.1's own functions (scripts/make_reward_vectors.py).
TEST_P(VerlScores, AreGivenToEveryResponse) {
  const RewardRule* rule = reward_rule(GetParam());
  ASSERT_NE(rule, nullptr);
  const json all = verl_scores(), &rows = all.at(GetParam());
  ASSERT_GE(rows.size(), 700u);
  for (const json& row : rows) {
    const auto response = row[0].get<std::string>(), truth = row[1].get<std::string>();
    EXPECT_EQ(rule->score({"", response, truth}), row[2].get<double>())
        << "response " << row[0] << ", truth " << row[1];
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, VerlScores,
                         testing::Values("gsm8k", "gsm8k_flexible", "numeric", "math", "math_dapo",
                                         "format"),
                         [](const auto& instance) { return std::string(instance.param); });

TEST(RewardRules, ADataSourceHasTheRuleThatVerlGivesIt) {
  const RewardRule& rule = *reward_rule("by_data_source");
  const json all = verl_scores(), &rows = all.at("by_data_source");
  ASSERT_EQ(rows.size(), 36u);
  for (const json& row : rows) {
    const auto source = row[0].get<std::string>(), response = row[1].get<std::string>(),
               truth = row[2].get<std::string>();
    EXPECT_TRUE(rule.knows(source));
    EXPECT_EQ(rule.score({source, response, truth}), row[3].get<double>()) << row;
  }
  EXPECT_FALSE(rule.knows("numina_olympiads")) << "verl's rule for it needs sympy";
  EXPECT_FALSE(rule.knows("openai/gsm8k2"));
}

/// What verl 0.9.1's gsm8k.extract_solution and math_dapo.compute_score["pred"] return.
TEST(RewardRules, TheAnswersThatAreComparedAreVerls) {
  using Found = std::optional<std::string>;
  EXPECT_EQ(gsm8k_answer("so #### 1,234."), "1234.");
  EXPECT_EQ(gsm8k_flexible_answer("so #### 1,234."), "1,234.");
  EXPECT_EQ(gsm8k_answer("none"), Found());
  EXPECT_EQ(gsm8k_flexible_answer("none"), Found());
  EXPECT_EQ(gsm8k_answer("2 and 3,000.5 ."), Found());
  EXPECT_EQ(gsm8k_flexible_answer("2 and 3,000.5 ."), "3,000.5");
  EXPECT_EQ(gsm8k_answer("#### -7\n#### 8"), "8");
  EXPECT_EQ(math_dapo_answer("Answer: 7 dollars"), "7");
  EXPECT_EQ(math_dapo_answer("\\boxed{42}"), "42");
  EXPECT_EQ(math_dapo_answer("nothing"), "[INVALID]");
  EXPECT_EQ(math_dapo_answer("Answer: \\frac12"), "\\frac{1}{2}");
  EXPECT_EQ(math_dapo_answer("Answer: 3\nAnswer: x=4"), "4");
  EXPECT_EQ(math_answer("\\boxed{k = .5}"), "\\frac{1}{2}");
  EXPECT_EQ(math_answer("5"), Found());
  const ScoreDetail right = reward_rule("math_dapo")->detail({"s", "Answer: 7", "7"});
  EXPECT_EQ(right.accuracy, 1.0);
  EXPECT_EQ(right.answer, "7");
  const ScoreDetail by_source =
      reward_rule("by_data_source")->detail({"openai/gsm8k", "#### 3", "4"});
  EXPECT_EQ(by_source.answer, "3");
  EXPECT_FALSE(by_source.accuracy);
  EXPECT_EQ(accuracy_of(0.25, by_source), 0.25) << "gsm8k's function gives a plain number";
  EXPECT_EQ(accuracy_of(-1, detail_of(*reward_rule("math_dapo"), {"s", "Answer: 7", "8"})), 0.0);
  EXPECT_EQ(accuracy_of(0.5, detail_of(*reward_rule("fraction"), {"s", "1", "12"})), 0.5);
}

TEST(RewardRules, FractionCountsRightCharactersInPlace) {
  EXPECT_DOUBLE_EQ(fraction_reward("714", "714"), 1.0);
  EXPECT_DOUBLE_EQ(fraction_reward("710", "714"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(fraction_reward("147", "714"), 0.0);
  EXPECT_DOUBLE_EQ(fraction_reward("7", "714"), 1.0 / 3);
  EXPECT_DOUBLE_EQ(fraction_reward("", "714"), 0.0);
  EXPECT_DOUBLE_EQ(fraction_reward("714999", "714"), 1.0);
  EXPECT_DOUBLE_EQ(fraction_reward("x14", "714"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(fraction_reward("\u4f60x", "\u4f60\u597d"), 0.5) << "characters, not bytes";
  EXPECT_DOUBLE_EQ(
      fraction_reward(std::vector<std::int32_t>{1, 9, 3, 4}, std::vector<std::int32_t>{1, 2, 3}),
      2.0 / 3);
}

TEST(RewardRules, ExactIgnoresOnlyOuterWhiteSpace) {
  EXPECT_EQ(exact_reward(" 714\n", "714"), 1.0);
  EXPECT_EQ(exact_reward("7 14", "714"), 0.0);
  EXPECT_EQ(exact_reward("7140", "714"), 0.0);
  EXPECT_EQ(reward_rule("length"), nullptr);
  EXPECT_EQ(reward_rule_names().size(), reward_rules().size());
}

}  // namespace
}  // namespace tessera
