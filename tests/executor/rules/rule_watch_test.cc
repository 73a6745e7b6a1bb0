// When a rule is told in a run: once as it begins to be violated, once as it ceases to be.
#include "executor/rules/rule_watch.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

/// What is told after each of these steps (x: violated, .: holds, ?: unknown) - e: entered, v:
/// violated since, l: left, -: nothing.
std::string told(const Rule& rule, const std::string& steps, RuleWatch watch = {}) {
  std::string said;
  for (const char step : steps) {
    watch.begin_step();
    const RuleOutcome outcome = step == 'x'   ? RuleOutcome::violated
                                : step == '.' ? RuleOutcome::holds
                                              : RuleOutcome::unknown;
    said += "-evl"[static_cast<int>(watch.look(rule, outcome))];
  }
  return said;
}

TEST(RuleWatch, EntersAndLeavesOnce) {
  EXPECT_EQ(told({.name = "r"}, "..xxx.....x"), "--evv----le");
}

TEST(RuleWatch, ANumberThatSwingsAboutItsLimitIsToldOnce) {
  EXPECT_EQ(told({.name = "r"}, "x.x.x..x....x"), "e-v-v--v----v");
}

TEST(RuleWatch, ATrendNeedsStepsInARow) {
  const Rule trend{.name = "r", .after_steps = 2, .for_steps = 3};
  EXPECT_EQ(told(trend, "xxxxx"), "----e") << "the first two do not count";
  EXPECT_EQ(told(trend, "..xx.xx.xx.xx."), "--------------");
  EXPECT_EQ(told(trend, "..xxx.x...x....."), "----e-v---v----l");
}

TEST(RuleWatch, AStepWithoutTheNumberChangesNothing) {
  EXPECT_EQ(told({.name = "r", .for_steps = 2}, "x?x?..?.?.."), "--e-------l");
}

TEST(RuleWatch, RulesAreWatchedApartAndForgottenTogether) {
  RuleWatch watch;
  const Rule a{.name = "a"}, b{.name = "b"};
  watch.begin_step();
  EXPECT_EQ(watch.look(a, RuleOutcome::violated), RuleTurn::entered);
  EXPECT_EQ(watch.look(b, RuleOutcome::holds), RuleTurn::quiet);
  watch.begin_step();
  EXPECT_EQ(watch.look(a, RuleOutcome::violated), RuleTurn::violated);
  EXPECT_EQ(watch.look(b, RuleOutcome::violated), RuleTurn::entered);
  watch.forget();
  EXPECT_EQ(watch.look(a, RuleOutcome::violated), RuleTurn::entered);
}

}  // namespace
}  // namespace tessera
