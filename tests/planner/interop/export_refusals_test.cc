// What an engine or a launcher cannot carry out is refused, with the reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <tuple>

#include "cost_models/documents/problem.h"
#include "planner/engines/engine.h"
#include "planner/engines/engine_check.h"
#include "planner/interop/export.h"
#include "planner/interop/files/setting.h"
#include "tests/planner/interop/exported.h"
#include "tests/planner/interop/random_plans.h"
#include "tests/planner/interop/target_of.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

TEST(Export, RefusesEightWayTensorParallelismOf28HeadsWithTheReason) {
  Plan plan = tessera_plan();
  Problems none;
  plan.models["actor"] = {*read_model_spec("qwen2.5-7b", none), "qwen2.5-7b", ""};
  RolePlan& rollout = plan.roles[1];
  for (RolePlan& role : plan.roles) {
    role.ranks = {0, 1, 2, 3, 4, 5, 6, 7};
    role.layout.dp = 8;
    role.layout.stages = even_stages(28, 1, 1);
  }
  rollout.layout.tp = 8;
  rollout.layout.dp = 1;
  Problems tessera;
  EXPECT_TRUE(export_plan(plan, target_of("torchrun"), {}, tessera).has_value());
  for (const ExportTarget& target : {target_of("verl"), target_of("verl-megatron"),
                                     target_of("vllm"), target_of("sglang"), target_of("ray")}) {
    Problems problems;
    EXPECT_FALSE(export_plan(plan, target, {}, problems).has_value()) << target.name;
    ASSERT_FALSE(problems.empty());
    EXPECT_EQ(problems[0].place, "/roles/1/layout/tp");
    EXPECT_THAT(problems[0].expected, HasSubstr("28 query heads"));
  }
}

TEST(Export, RefusesWhatOneEngineLacks) {
  const auto refusal = [](auto change, const char* engine, const ExportTarget& target) {
    Plan plan = RandomPlans(engine, 21).next();
    while (plan.roles[0].ranks.size() < 8 || plan.find(Role::reference) == nullptr) {
      static RandomPlans more(engine, 22);
      plan = more.next();
    }
    change(plan);
    Problems problems;
    EXPECT_FALSE(export_plan(plan, target, {}, problems).has_value());
    return problems.empty() ? Problem{} : problems[0];
  };
  EXPECT_EQ(refusal([](Plan& p) { p.roles[1].layout.pp = 2; }, "verl", target_of("verl")).place,
            "/roles/1/layout/pp");
  EXPECT_EQ(refusal([](Plan& p) { p.roles[0].layout.zero = 1; }, "verl", target_of("verl")).place,
            "/roles/0/layout/zero");
  EXPECT_EQ(refusal([](Plan& p) { p.roles[0].recompute = Recompute::selective; }, "verl",
                    target_of("verl"))
                .place,
            "/roles/0/recompute");
  EXPECT_EQ(refusal([](Plan& p) { p.roles[0].layout.zero = 3; }, "verl-megatron",
                    target_of("verl-megatron"))
                .place,
            "/roles/0/layout/zero");
  EXPECT_EQ(refusal([](Plan& p) { p.roles[1].ranks.pop_back(); }, "verl", target_of("verl")).place,
            "/roles/1/ranks");
  EXPECT_EQ(
      refusal([](Plan& p) { p.workload.algorithm = "custom"; }, "verl", target_of("verl")).place,
      "/workload/algorithm");
  EXPECT_EQ(
      refusal([](Plan& p) { p.models["actor"].path = "${oc.env:HOME}"; }, "verl", target_of("verl"))
          .place,
      "actor_rollout_ref.model.path");
}

TEST(Capabilities, EveryEngineHasATableAndRefusesUnknownNames) {
  for (const std::string& name : engine_names()) {
    Problems problems;
    const Engine* const engine = engine_of(name, problems);
    ASSERT_NE(engine, nullptr);
    EXPECT_EQ(engine->name, name);
    EXPECT_FALSE(engine->capabilities.roles.empty());
  }
  Problems problems;
  EXPECT_EQ(engine_of("verl_megatron", problems), nullptr);
  EXPECT_EQ(problems[0].hint, "did you mean 'verl-megatron'?");
}

// core/pipeline_parallel/schedules.py raises an error where global batch / (micro-batch x dp) is no
// multiple of pp.
TEST(Export, MicroBatchesOfMegatronFillTheRoundsOfVirtualStages) {
  Plan plan = RandomPlans("verl-megatron", 62).next();
  plan.engine = "megatron";
  RolePlan actor = plan.roles[0];
  actor.ranks.resize(8);
  std::iota(actor.ranks.begin(), actor.ranks.end(), 0);
  actor.offload = {};
  actor.lora = {};
  actor.layout = {{.pp = 4, .vpp = 2, .dp = 2}, 1};
  const auto layers = static_cast<int>(plan.models.at(actor.model).spec.layers);
  actor.layout.stages = even_stages(layers - layers % 8, 4, 2);
  plan.models.at(actor.model).spec.layers = layers - layers % 8;
  plan.reshard.clear();
  const std::int64_t longest = plan.workload.prompt_tokens + plan.workload.response_tokens.max;
  const auto exported = [&](std::int64_t mini_batch, std::int64_t sequences, Problems& problems) {
    actor.batching.mini_batch = mini_batch;
    actor.batching.update_tokens = sequences * longest;
    plan.roles = {actor};
    return export_plan(plan, target_of("megatron"), {}, problems);
  };
  Problems problems;
  for (const auto& [mini_batch, sequences, micro] :
       {std::tuple{24, 6, 3}, {24, 12, 3}, {24, 2, 1}, {40, 5, 5}, {8, 4, 1}}) {
    const auto made = exported(mini_batch, sequences, problems);
    ASSERT_TRUE(made) << to_string(problems.at(0));
    EXPECT_EQ(mini_batch / 2 / micro % 4, 0);
    EXPECT_THAT(text_of(*made, "actor.sh"),
                HasSubstr("--micro-batch-size\n  " + std::to_string(micro) + "\n"));
  }
  EXPECT_FALSE(exported(20, 5, problems));
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].place, "/roles/0/layout/vpp");
}

// Its text of a layout states what its counts of the first and the last stage do not.
TEST(Capabilities, MegatronStagesMayHoldAnyLayers) {
  Problems problems;
  const Engine& megatron = engine_named("megatron");
  const ModelSpec model = *read_model_spec("qwen3-8b", problems);
  ParallelLayout layout{{.pp = 4}};
  layout.stages = {{0, 8}, {8, 18}, {18, 28}, {28, 36}};
  EXPECT_TRUE(outside_capabilities(megatron, model, Role::actor, layout).empty());
  layout.stages = {{0, 8}, {8, 17}, {17, 28}, {28, 36}};
  EXPECT_TRUE(outside_capabilities(megatron, model, Role::actor, layout).empty());
  layout.stages = even_stages(36, 2, 2);
  layout.pp = layout.vpp = 2;
  EXPECT_TRUE(outside_capabilities(megatron, model, Role::actor, layout).empty());
  layout.stages = {{0, 8}, {8, 18}, {18, 27}, {27, 36}};
  EXPECT_TRUE(outside_capabilities(megatron, model, Role::actor, layout).empty());
}

}  // namespace
}  // namespace tessera
