// Rollouts of engines that page their KV cache, and replicas that share prompts unevenly.
#include <gtest/gtest.h>

#include <algorithm>

#include "cost_models/fit/derived_calibration.h"
#include "planner/engines/engine.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "planner/request/request.h"
#include "planner/space/pool_share.h"
#include "tests/planner/sample_requests.h"

namespace tessera {
namespace {

PlanRequest preset_request(const char* model, const char* cluster, const char* engine,
                           LengthSpec lengths) {
  Problems problems;
  PlanRequest request;
  const auto spec = read_model_spec(model, problems);
  const auto machines = read_cluster_spec(cluster, problems);
  EXPECT_TRUE(spec && machines);
  request.models["actor"] = {*spec, model, ""};
  request.cluster = *machines;
  request.workload = workload_of("grpo", KlPlace::loss, false);
  request.workload.prompts_per_step = 1024;
  request.workload.samples_per_prompt = 8;
  request.workload.prompt_tokens = 512;
  request.workload.mini_batches = 4;
  request.workload.response_tokens = std::move(lengths);
  request.engine = engine;
  request.calibration = *calibration_for_cluster(*machines, problems);
  request.created = "2026-01-01T00:00:00Z";
  return request;
}

std::optional<Plan> planned(PlanRequest request, const std::vector<std::string>& words = {}) {
  Problems problems;
  request.fixed = parse_settings(words, problems);
  const auto outcome = make_plan(request, problems);
  EXPECT_TRUE(outcome && problems.empty());
  if (!outcome || !std::holds_alternative<Plan>(*outcome)) return std::nullopt;
  return std::get<Plan>(*outcome);
}

std::int64_t at_once(const Plan& plan) { return plan.find(Role::rollout)->batching.max_sequences; }

// 33 longest sequences fit beside the weights of a 7B, where some 230 sequences live.
TEST(PagedRollout, DecodesAsManySequencesAsLiveInTheCache) {
  const LengthSpec lengths{4000, 1, 32000};
  const auto live =
      planned(preset_request("qwen2.5-7b", "h100-8", "verl", lengths), {"rollout.tp=1"});
  ASSERT_TRUE(live);
  EXPECT_GT(at_once(*live), 150);
  EXPECT_LT(at_once(*live), 260);
  const auto memory = live->find(Role::rollout)->memory.at(Phase::gen);
  // 57,344 bytes a token.
  const double each =
      static_cast<double>(memory.kv_cache.value) / 57344 / static_cast<double>(at_once(*live));
  EXPECT_NEAR(each / (512 + 4000), 1, 0.15);
  // So does our own executor, whose plan says how much its cache holds.
  const auto own =
      planned(preset_request("qwen2.5-7b", "h100-8", "tessera", lengths), {"rollout.tp=1"});
  ASSERT_TRUE(own);
  EXPECT_GT(at_once(*own), 150);
  const RolePlan& rollout = *own->find(Role::rollout);
  EXPECT_NEAR(static_cast<double>(rollout.memory.at(Phase::gen).kv_cache.value) / 57344 /
                  static_cast<double>(rollout.batching.kv_cache_tokens),
              1, 1e-3);
}

TEST(PagedRollout, ALongerLimitOfTheSameLengthsCostsNothing) {
  for (const char* const tp : {"rollout.tp=1", "rollout.tp=2", "rollout.tp=4"}) {
    const auto seconds = [&](std::int64_t most) {
      const auto plan =
          planned(preset_request("qwen2.5-7b", "h100-8", "verl", {3000, 0.5, most}), {tp});
      return plan ? plan->prediction.phases_s.at(Phase::gen) : 0.0;
    };
    const double at_32k = seconds(32768);
    EXPECT_GT(at_32k, 0);
    EXPECT_NEAR(seconds(65536) / at_32k, 1, 1e-3) << tp;
    EXPECT_NEAR(seconds(16384) / at_32k, 1, 0.02) << tp;  // its longest are cut off
  }
}

TEST(PagedRollout, MoreMemoryNeverMakesItSlower) {
  double before = 1e300;
  for (const double memory : {70.0, 75.0, 80.0, 90.0, 110.0, 140.0}) {
    PlanRequest request = preset_request("qwen2.5-7b", "h100-8", "verl", {4000, 1, 32000});
    request.cluster.device.memory = from_gib(memory);
    const auto plan = planned(request, {"rollout.tp=1"});
    if (!plan) continue;
    EXPECT_LE(plan->prediction.step_s, before * (1 + 1e-9)) << memory;
    before = plan->prediction.step_s;
  }
  EXPECT_LT(before, 1e300);
}

// Of five nodes, four were used: 1,024 prompts are no multiple of 40.
TEST(UnevenReplicas, UseEveryGpuOfFiveNodes) {
  for (const char* const engine : {"verl", "tessera"}) {
    PlanRequest request = preset_request("llama3.1-8b", "h100-64", engine, {640, 0.5, 1024});
    request.workload.samples_per_prompt = 5;
    request.workload.prompt_tokens = 1024;
    request.cluster.nodes = 5;
    const auto plan = planned(request);
    ASSERT_TRUE(plan) << engine;
    EXPECT_EQ(plan->find(Role::rollout)->ranks.size(), 40U) << engine;
    const int dp = plan->find(Role::rollout)->layout.dp;
    EXPECT_NE(1024 % dp, 0) << engine;
    // What is dealt: requests one by one, our own prompts whole.
    const PromptDealing dealing = engine_named(engine).prompts;
    EXPECT_EQ(most_sequences(request.workload, dealing, 20),
              dealing == PromptDealing::requests ? 256 : 52 * 5);
  }
}

TEST(UnevenReplicas, MoreReplicasThanPromptsAreRefusedWherePromptsStayWhole) {
  PlanRequest request = preset_request("qwen2.5-0.5b", "h100-8", "tessera", {640, 0.5, 1024});
  request.workload.prompts_per_step = 6;
  request.workload.mini_batches = 1;
  EXPECT_TRUE(planned(request, {"rollout.dp=4", "rollout.tp=2"}));
  EXPECT_FALSE(planned(request, {"rollout.dp=8"}));
  request.engine = "verl";
  EXPECT_TRUE(planned(request, {"rollout.dp=8"}));  // 48 requests
}

TEST(UnevenReplicas, SpareOnesAreThoseWhoseNeighboursHaveAsMuchWithoutThem) {
  PlanRequest request = preset_request("llama3.1-8b", "h100-64", "verl", {640, 0.5, 1024});
  request.workload.samples_per_prompt = 1;
  const auto share = [&](int dp) {
    Candidate rollout;
    rollout.role = Role::rollout;
    rollout.tp = 8;
    rollout.dp = dp;
    rollout.gpus = 8 * dp;
    return pool_share(request, PromptDealing::requests, rollout);
  };
  // 1,024 / 64 = 16 each; 1,024 / 69 and 1,024 / 70 make 15 at most, 1,024 / 74 makes 14.
  EXPECT_EQ(share(64), PoolShare::even);
  EXPECT_EQ(share(69), PoolShare::uneven);
  EXPECT_EQ(share(70), PoolShare::spare);
  EXPECT_EQ(share(73), PoolShare::spare);
  EXPECT_EQ(share(74), PoolShare::uneven);
  request.fixed.values[{Role::rollout, Field::dp}] = 70;
  EXPECT_EQ(share(70), PoolShare::uneven);
}

// A pool of its own with 24 GPUs, where 16 and 32 have even shares.
TEST(UnevenReplicas, OfAPoolOfItsOwnAreFoundWhereTheyAreBest) {
  PlanRequest request = preset_request("llama3.1-8b", "h100-64", "any", {640, 0.5, 1024});
  request.cluster.nodes = 5;
  const std::string apart = "placement=actor+reference|rollout";
  const auto best = planned(request, {apart});
  ASSERT_TRUE(best);
  for (const char* const gpus : {"8", "16", "24", "32"}) {
    const auto fixed = planned(request, {apart, std::string("rollout.gpus=") + gpus});
    if (!fixed) continue;
    EXPECT_GE(fixed->prediction.step_s, best->certificate.lower_bound * (1 - 1e-9)) << gpus;
  }
}

}  // namespace
}  // namespace tessera
