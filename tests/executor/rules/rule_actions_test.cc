// The table of actions: every action has a row, and what each decides within its bounds.
#include "executor/rules/rule_actions.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

AskedActions asked(std::initializer_list<RuleAction> actions) {
  AskedActions all;
  for (const RuleAction action : actions) all.add(action);
  return all;
}

constexpr RuleOccasion kOccasion{.step = 7, .can_roll_back = true, .config = {}};

TEST(RuleActions, EveryActionThatDoesSomethingIsARowOfItsOwn) {
  std::set<std::string_view> metrics;
  for (const RuleActionRow& row : rule_action_rows()) {
    RuleState state;
    decide(asked({row.action}), kOccasion, state);
    EXPECT_EQ(state.*row.count, 1) << name_of(row.action);
    EXPECT_EQ(rule_metrics(state).at(std::string(row.metric)), 1) << row.metric;
    metrics.insert(row.metric);
  }
  EXPECT_EQ(metrics.size(), rule_action_rows().size());
  for (const RuleAction action : {RuleAction::warn, RuleAction::pause, RuleAction::set_lr,
                                  RuleAction::roll_back, RuleAction::stop}) {
    EXPECT_EQ(std::ranges::count(rule_action_rows(), action, &RuleActionRow::action), 1)
        << name_of(action);
  }
}

TEST(RuleActions, NothingThatWasNotAskedForHappens) {
  RuleState state;
  const RuleDecision decision = decide(AskedActions(), kOccasion, state);
  EXPECT_FALSE(decision.stop || decision.pause || decision.roll_back);
  EXPECT_TRUE(decision.lines.empty());
  EXPECT_EQ(state, RuleState{});
}

TEST(RuleActions, RatesFallByTheFactorAndNoLowerThanTheFloor) {
  const RuleOccasion occasion{.step = 7, .config = {.lr_factor = 0.5, .lr_floor = 0.2}};
  RuleState state;
  std::vector<double> scales;
  for (int i = 0; i < 5; ++i) {
    decide(asked({RuleAction::set_lr}), occasion, state);
    scales.push_back(state.lr_scale);
  }
  EXPECT_THAT(scales, ElementsAre(0.5, 0.25, 0.2, 0.2, 0.2));
  EXPECT_EQ(state.lr_lowered, 3) << "what changes nothing is not counted";
  // A run whose rates are lower than the floor of a new file keeps them.
  state.lr_scale = 0.05;
  decide(asked({RuleAction::set_lr}), occasion, state);
  EXPECT_EQ(state.lr_scale, 0.05);
}

TEST(RuleActions, RollBacksAreBoundedAndNeedACheckpoint) {
  RuleOccasion occasion{.step = 7, .can_roll_back = true, .config = {.roll_backs = 1}};
  RuleState state;
  EXPECT_FALSE(decide(asked({RuleAction::roll_back}), occasion, state).stop);
  const RuleDecision last = decide(asked({RuleAction::roll_back}), occasion, state);
  EXPECT_TRUE(last.roll_back && last.stop) << "the run ends as it was at the checkpoint";
  EXPECT_EQ(state.roll_backs, 1);
  occasion.can_roll_back = false;
  state = {};
  const RuleDecision without = decide(asked({RuleAction::roll_back}), occasion, state);
  EXPECT_FALSE(without.roll_back);
  EXPECT_TRUE(without.stop);
  EXPECT_EQ(state.roll_backs, 0);
  EXPECT_THAT(without.lines, ElementsAre(HasSubstr("there is no checkpoint")));
}

TEST(RuleActions, ActionsOfOneStepAreAllCarriedOut) {
  RuleState state;
  const RuleDecision decision = decide(
      asked({RuleAction::pause, RuleAction::set_lr, RuleAction::roll_back}), kOccasion, state);
  EXPECT_TRUE(decision.pause && decision.roll_back);
  EXPECT_FALSE(decision.stop);
  EXPECT_EQ(state.lr_scale, 0.5);
  EXPECT_EQ(decision.lines.size(), 2U) << "a pause has its line when the run is saved";
}

/// Of a person who asks no rule says anything, and no rule's pauses are more.
TEST(RuleActions, APauseOfAPersonIsNoRules) {
  AskedActions asked;
  asked.add_pause_of_person();
  RuleState state;
  const RuleDecision decision = decide(AskedActions(asked.bits()), kOccasion, state);
  EXPECT_TRUE(decision.pause);
  EXPECT_TRUE(decision.lines.empty());
  EXPECT_EQ(state, RuleState{});
  asked.add(RuleAction::pause);
  EXPECT_TRUE(decide(AskedActions(asked.bits()), kOccasion, state).pause);
  EXPECT_EQ(state.pauses, 1);
}

TEST(RuleActions, NumbersThatAreNoneAddUp) {
  RuleState state;
  for (const double skipped : {2.0, 0.0, 1.0}) {
    count_step({{"training/not_finite", 1}, {"training/skipped_updates", skipped}}, state);
  }
  EXPECT_EQ(rule_metrics(state).at("training/not_finite_total"), 3);
  EXPECT_EQ(rule_metrics(state).at("training/skipped_updates_total"), 3);
}

}  // namespace
}  // namespace tessera
