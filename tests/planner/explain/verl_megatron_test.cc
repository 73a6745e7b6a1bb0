// verl's Megatron has one set of process groups in a process: no plan for it may ask for two.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <set>
#include <tuple>

#include "planner/engines/engine_check.h"
#include "planner/explain/advice.h"
#include "planner/explain/limits.h"
#include "planner/explain/why_not.h"
#include "planner/request/plan_value.h"
#include "tests/planner/planned.h"

namespace tessera {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

PlanRequest request_of(const std::string& model, const std::string& cluster,
                       const std::string& workload, const std::vector<std::string>& words = {}) {
  Problems problems;
  PlanRequest request;
  request.models["actor"] = {*read_model_spec(model, problems), model, ""};
  request.cluster = *read_cluster_spec(cluster, problems);
  request.workload = *read_workload(workload, problems);
  request.calibration = *calibration_for_cluster(request.cluster, problems);
  request.engine = "verl-megatron";
  request.fixed = parse_settings(words, problems);
  EXPECT_TRUE(problems.empty()) << to_string(problems[0]);
  return request;
}

using Groups = std::tuple<int, int, int, int, int, int>;

// Of the roles that train or score, by their first rank.
std::map<int, std::set<Groups>> groups_of(const Plan& plan) {
  std::map<int, std::set<Groups>> groups;
  for (const RolePlan& role : plan.roles) {
    if (role.role == Role::rollout || role.role == Role::reward) continue;
    const ParallelLayout& l = role.layout;
    groups[role.ranks.front()].insert({l.tp, l.pp, l.vpp, l.cp, l.ep, l.etp});
  }
  return groups;
}

TEST(VerlMegatron, PlansOfThePresetsHaveOneSetOfGroups) {
  int plans = 0, broken = 0, refused = 0;
  for (const char* model :
       {"qwen2.5-0.5b", "qwen2.5-7b", "qwen2.5-14b", "qwen2.5-32b", "qwen2.5-72b", "llama3.1-8b",
        "llama3.1-70b", "qwen3-8b", "qwen3-30b-a3b", "qwen3-235b-a22b", "mixtral-8x7b",
        "moonlight-16b-a3b", "deepseek-v3", "gpt-oss-20b"}) {
    for (const char* cluster :
         {"h100-8", "h800-8", "h200-8", "h100-64", "h800-64", "h200-64", "h20-64", "a100-64"}) {
      for (const char* workload : {"grpo-7b-1k", "ppo-7b-1k"}) {
        Problems problems;
        const auto outcome = make_plan(request_of(model, cluster, workload), problems);
        const Plan* const plan = outcome ? std::get_if<Plan>(&*outcome) : nullptr;
        if (plan == nullptr) {
          ++refused;
          continue;
        }
        ++plans;
        for (const auto& [rank, groups] : groups_of(*plan)) {
          broken += groups.size() > 1 ? 1 : 0;
          EXPECT_EQ(groups.size(), 1u) << model << " " << cluster << " " << workload;
        }
        EXPECT_TRUE(outside_capabilities(*plan).empty()) << model << " " << cluster;
      }
    }
  }
  std::cout << plans << " plans, " << broken << " with several sets of groups; " << refused
            << " requests without a plan\n";
  EXPECT_GT(plans, 92);
}

TEST(VerlMegatron, SettingsThatContradictTheLimitAreAnsweredByName) {
  const Infeasible none = refused(request_of("qwen2.5-7b", "h100-8", "ppo-7b-1k",
                                             {"actor.tp=2", "critic.tp=4", "reference.pp=2"}));
  ASSERT_FALSE(none.reasons.empty());
  EXPECT_THAT(none.reasons[0], AllOf(HasSubstr("actor.tp=2 and critic.tp=4"), HasSubstr("mpu"),
                                     HasSubstr("tp, pp, vpp, cp, ep and etp")));
  EXPECT_THAT(none.nearest_fix, HasSubstr("tp="));
  // One role's degree is everyone's.
  const Plan plan =
      planned(request_of("qwen2.5-7b", "h100-8", "ppo-7b-1k", {"critic.tp=4", "critic.pp=1"}));
  EXPECT_EQ(plan.find(Role::actor)->layout.tp, 4);
  EXPECT_EQ(plan.find(Role::reference) == nullptr ? 4 : plan.find(Role::reference)->layout.tp, 4);
}

TEST(VerlMegatron, WhyNotNamesTheLimitAndTheLadderMovesTheRolesTogether) {
  const PlanRequest request = request_of("qwen2.5-7b", "h100-8", "ppo-7b-1k");
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
  Plan plan = planned(request_of("qwen2.5-7b", "h100-8", "ppo-7b-1k",
                                 {"actor.tp=2", "actor.pp=1", "actor.vpp=1", "actor.cp=1"}));
  const Calibration calibration;
  EXPECT_THAT(explain(plan, calibration), Not(HasSubstr("cannot run it")));
  for (RolePlan& role : plan.roles) {
    if (role.role != Role::critic) continue;
    role.layout.tp = 4;
    role.layout.dp_replicate /= 2;
  }
  EXPECT_THAT(explain(plan, calibration),
              AllOf(HasSubstr("engine 'verl-megatron' cannot run it: "),
                    HasSubstr("tp 4 of the critic"), HasSubstr("tp 2 as the actor has")));
  EXPECT_THAT(explain_json(plan, calibration), HasSubstr("\"engine_refuses\": ["));
}

}  // namespace
}  // namespace tessera
