// What images of prompts cost a plan, and that a simulated step has it, too.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cost_models/vision/tower.h"
#include "planner/engines/engine.h"
#include "planner/explain/planner.h"
#include "planner/request/plan_request.h"
#include "simulator/engine/simulate.h"
#include "tests/simulator/sample_plans.h"

namespace tessera {
namespace {

PlanRequest asked(const std::string& engine, const std::vector<std::string>& fixed,
                  const char* model, ImageSpec images) {
  Problems problems;
  Workload workload = workload_of("grpo", KlPlace::loss, false);
  workload.prompts_per_step = 128;
  workload.samples_per_prompt = 4;
  workload.prompt_tokens = 1536;
  workload.images = images;
  workload.response_tokens = {512, 0, 512};
  workload.mini_batches = 2;
  PlanRequest request =
      request_of(*read_model_spec(model, problems), workload, cluster_of(8, 1, 80));
  request.engine = engine;
  request.traits = traits_of(engine);
  request.fixed = parse_settings(fixed, problems);
  EXPECT_TRUE(problems.empty());
  return request;
}

struct Told {
  Plan plan;
  std::string refusal;
};

Told planned(const PlanRequest& request) {
  Problems problems;
  const auto outcome = make_plan(request, problems);
  const Plan* const plan = outcome ? std::get_if<Plan>(&*outcome) : nullptr;
  return {plan != nullptr ? *plan : Plan{}, problems.empty() ? "" : to_string(problems.front())};
}

struct Asked {
  std::string engine;
  std::vector<std::string> fixed;
};

const std::vector<Asked> kAsked = {
    {"verl", {"actor.dp_shard=8", "rollout.tp=2"}},
    {"verl-megatron", {"actor.tp=2", "actor.pp=2", "rollout.tp=2"}},
};
constexpr ImageSpec kNone, kOne{1, 1196};

// A pass of the tower is 0.32 of the language model's operations here (by hand: 6.6 of 20.6 TFLOP
// of 2,048 tokens), most of it at the rate of products.
TEST(Images, LengthenEveryPassOverPromptsInPlanAndSimulationAlike) {
  for (const Asked& each : kAsked) {
    SCOPED_TRACE(each.engine);
    const PlanRequest with = asked(each.engine, each.fixed, "qwen2.5-vl-7b", kOne);
    const Plan plan = planned(with).plan;
    std::vector<std::string> fixed = each.fixed;
    const Plan text = planned(asked(each.engine, fixed, "qwen2.5-vl-7b", kNone)).plan;
    ASSERT_FALSE(plan.roles.empty() || text.roles.empty());
    for (const Phase phase : {Phase::old_log_prob, Phase::ref, Phase::update_actor}) {
      const double ratio =
          plan.prediction.phases_s.at(phase).value / text.prediction.phases_s.at(phase).value;
      EXPECT_GT(ratio, 1.1) << name_of(phase);
      EXPECT_LT(ratio, 2.4) << name_of(phase);
    }
    EXPECT_GT(plan.prediction.phases_s.at(Phase::gen), text.prediction.phases_s.at(Phase::gen));
    const Simulation simulated = simulate(plan, with.calibration);
    EXPECT_NEAR(simulated.step_s / plan.prediction.step_s.value, 1, 0.02);
    for (const Phase phase : {Phase::gen, Phase::old_log_prob, Phase::ref, Phase::update_actor}) {
      EXPECT_NEAR(simulated.phases_s.at(phase) / plan.prediction.phases_s.at(phase).value, 1, 0.03)
          << name_of(phase);
    }
    EXPECT_EQ(simulated.peak_bytes(), plan.prediction.peak_bytes);
  }
}

// Equal settings, so that what differs is the images alone.
TEST(Images, LieInTheMemoryOfTheFirstStage) {
  const std::vector<std::string> fixed = {
      "actor.dp_shard=8",   "actor.tp=1",   "actor.recompute=full",    "actor.update_tokens=8192",
      "actor.offload=none", "rollout.tp=2", "rollout.max_sequences=64"};
  const Told with = planned(asked("verl", fixed, "qwen2.5-vl-7b", kOne));
  const Told without = planned(asked("verl", fixed, "qwen2.5-vl-7b", kNone));
  ASSERT_FALSE(with.plan.roles.empty()) << with.refusal;
  ASSERT_FALSE(without.plan.roles.empty()) << without.refusal;
  const auto activations = [](const Plan& plan) {
    const RolePlan& actor = *plan.find(Role::actor);
    return actor.memory.at(Phase::update_actor).activations.value;
  };
  // Four sequences of 2,048 tokens: 4 x 4,784 patches, 32 inputs of 1,280 in 16 bit.
  const double inputs = 4 * 4784.0 * 32 * 1280 * 2;
  EXPECT_GT(static_cast<double>(activations(with.plan) - activations(without.plan)), inputs);
}

TEST(Images, AreRefusedWithoutATower) {
  const Told told = planned(asked("verl", {}, "qwen2.5-7b", kOne));
  EXPECT_TRUE(told.plan.roles.empty());
  EXPECT_NE(told.refusal.find("no vision tower"), std::string::npos) << told.refusal;
}

}  // namespace
}  // namespace tessera
