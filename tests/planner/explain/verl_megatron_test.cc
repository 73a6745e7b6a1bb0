// verl's Megatron has one set of process groups in a process: what is said of plans and settings
// that ask for two.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/explain/advice.h"
#include "planner/explain/limits.h"
#include "planner/explain/why_not.h"
#include "planner/plan/plan.h"
#include "planner/request/plan_value.h"
#include "tests/planner/planned.h"
#include "tests/planner/verl_megatron_request.h"

namespace tessera {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(VerlMegatron, SettingsThatContradictTheLimitAreAnsweredByName) {
  const Infeasible none = refused(verl_megatron_request(
      "qwen2.5-7b", "h100-8", "ppo-7b-1k", {"actor.tp=2", "critic.tp=4", "reference.pp=2"}));
  ASSERT_FALSE(none.reasons.empty());
  EXPECT_THAT(none.reasons[0], AllOf(HasSubstr("actor.tp=2 and critic.tp=4"), HasSubstr("mpu"),
                                     HasSubstr("tp, pp, vpp, cp, ep and etp")));
  EXPECT_THAT(none.nearest_fix, HasSubstr("tp="));
  // One role's degree is everyone's.
  const Plan plan = planned(
      verl_megatron_request("qwen2.5-7b", "h100-8", "ppo-7b-1k", {"critic.tp=4", "critic.pp=1"}));
  EXPECT_EQ(plan.find(Role::actor)->layout.tp, 4);
  EXPECT_EQ(plan.find(Role::reference) == nullptr ? 4 : plan.find(Role::reference)->layout.tp, 4);
}

TEST(VerlMegatron, WhyNotNamesTheLimitAndTheLadderMovesTheRolesTogether) {
  const PlanRequest request = verl_megatron_request("qwen2.5-7b", "h100-8", "ppo-7b-1k");
  const Plan plan = planned(request);
  Problems problems;
  const auto answer = why_not(plan, request, {"actor.tp=1", "critic.tp=2"}, problems);
  ASSERT_TRUE(answer) << to_string(problems[0]);
  EXPECT_THAT(describe(*answer, plan),
              HasSubstr("one set of process groups (Megatron's mpu) for all roles"));
  for (const Rung& rung : advice_for(plan, request).ladder) {
    if (rung.what.rfind("actor TP", 0) != 0) continue;
    EXPECT_THAT(rung.words, ::testing::Contains(HasSubstr("critic.tp=")));
  }
}

TEST(VerlMegatron, ExplainReportsAPlanThatBreaksTheLimit) {
  Plan plan =
      planned(verl_megatron_request("qwen2.5-7b", "h100-8", "ppo-7b-1k",
                                    {"actor.tp=2", "actor.pp=1", "actor.vpp=1", "actor.cp=1"}));
  const Calibration calibration;
  EXPECT_THAT(explain(plan, calibration), Not(HasSubstr("cannot run it")));
  for (RolePlan& role : plan.roles) {
    if (role.role != Role::critic) continue;
    role.layout.tp = 4;
    role.layout.dp /= 2;
  }
  EXPECT_THAT(explain(plan, calibration),
              AllOf(HasSubstr("engine 'verl-megatron' cannot run it: "),
                    HasSubstr("tp 4 of the critic"), HasSubstr("tp 2 as the actor has")));
  EXPECT_THAT(explain_json(plan, calibration), HasSubstr("\"engine_refuses\": ["));
}

}  // namespace
}  // namespace tessera
