// rollout.batch_invariant in run.yaml: what is read, and which plans cannot keep it.
#include <gmock/gmock.h>

#include "cost_models/documents/problem.h"
#include "tests/executor/config/grpo_plan.h"
#include "tests/executor/config/rollout_file.h"

#include "executor/config/run_config.h"
#include "executor/config/run_config_vllm.h"

namespace tessera {
namespace {

using testing::HasSubstr;

/// The sample plan with the rollout's tensor parallel degree in training.
Plan equal_plan() {
  Plan plan = grpo_plan();
  const int tp = plan.find(Role::rollout)->layout.tp;
  for (RolePlan& role : plan.roles) {
    if (role.role != Role::actor) continue;
    role.layout.tp = tp;
    role.layout.cp = 1;
    role.dtypes.param = plan.find(Role::rollout)->dtypes.param;
  }
  return plan;
}

Plan with_actor(const std::function<void(RolePlan&)>& change) {
  Plan plan = equal_plan();
  for (RolePlan& role : plan.roles) {
    if (role.role == Role::actor) change(role);
  }
  return plan;
}

TEST(BatchInvarianceConfig, IsOffUnlessTheFileSaysSo) {
  Problems problems;
  for (const auto& [text, on] :
       std::vector<std::pair<std::string, bool>>{{"seed: 3", false},
                                                 {"batch_invariant: false", false},
                                                 {"batch_invariant: true", true}}) {
    const auto config = parse_run_config(yaml(text), "run.yaml", equal_plan(), problems);
    ASSERT_TRUE(config) << to_string(problems.at(0));
    EXPECT_EQ(config->rollout.batch_invariant, on) << text;
  }
}

// A plan says whether it is for the mode; a file that says otherwise hears it.
TEST(BatchInvarianceConfig, FollowsThePlanAndSaysWhereThePricesAreOthers) {
  const auto read = [](const Plan& plan, const std::string& rollout) {
    Problems problems;
    const auto config = parse_run_config(yaml(rollout), "run.yaml", plan, problems);
    EXPECT_TRUE(config) << to_string(problems.at(0));
    return config ? config->rollout : RolloutConfig{};
  };
  Plan plan = equal_plan();
  EXPECT_EQ(generation_note(plan, read(plan, "seed: 3")), "");
  EXPECT_THAT(generation_note(plan, read(plan, "batch_invariant: true")),
              HasSubstr("too quick (plan --engine tessera+invariant)"));
  plan.engine = "tessera+invariant";
  EXPECT_TRUE(read(plan, "seed: 3").batch_invariant);
  EXPECT_EQ(generation_note(plan, read(plan, "seed: 3")), "");
  EXPECT_THAT(generation_note(plan, read(plan, "batch_invariant: false")), HasSubstr("slower"));
}

TEST(BatchInvarianceConfig, RefusesWhatItCannotKeep) {
  const std::string mode = "batch_invariant: true";
  EXPECT_EQ(refused(equal_plan(), yaml(mode)), "");
  EXPECT_THAT(refused(with_actor([](RolePlan& actor) { actor.layout.tp *= 2; }), yaml(mode)),
              HasSubstr("sums over ranks differ"));
  EXPECT_THAT(refused(with_actor([](RolePlan& actor) { actor.layout.cp = 2; }), yaml(mode)),
              HasSubstr("cuts sequences over 2 ranks"));
  EXPECT_THAT(
      refused(with_actor([](RolePlan& actor) { actor.dtypes.param = DType::fp32; }), yaml(mode)),
      HasSubstr("weights of different types"));
  EXPECT_THAT(refused(equal_plan(), yaml(mode + ", engine: vllm")), HasSubstr("vLLM's kernels"));
  Plan experts = equal_plan();
  experts.models["actor"].spec.moe = MoeSpec{.experts = 4, .experts_per_token = 2, .expert_ffn = 8};
  EXPECT_THAT(refused(experts, yaml(mode)), HasSubstr("products of experts"));
  const std::string off = refused(experts, yaml("batch_invariant: false"));
  EXPECT_EQ(off.find("products of experts"), std::string::npos);
}

}  // namespace
}  // namespace tessera
