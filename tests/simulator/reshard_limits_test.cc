// No simulated reshard is faster than its bound: every cluster preset that a few seconds allow,
// with roles together and apart; equal where nothing but the narrowest port costs time.
#include "planner/explain/reshard_limits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "cost_models/collective.h"
#include "cost_models/documents/preset.h"
#include "cost_models/documents/problem.h"
#include "cost_models/fit/derived_calibration.h"
#include "planner/explain/infeasible.h"
#include "planner/explain/limits.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "planner/request/describe.h"
#include "planner/request/request.h"
#include "simulator/engine/plan_tasks.h"

namespace tessera {
namespace {

PlanRequest request_for(const std::string& model, const std::string& cluster,
                        const std::string& workload) {
  Problems problems;
  PlanRequest request;
  request.models["actor"] = {read_model_spec(model, problems).value(), model, ""};
  request.cluster = read_cluster_spec(cluster, problems).value();
  request.workload = read_workload(workload, problems).value();
  for (const char* const name : {"critic", "reward"}) {
    request.models[name] = request.models["actor"];
  }
  request.calibration = calibration_for_cluster(request.cluster, problems).value();
  request.created = "2026-01-01T00:00:00Z";
  return request;
}

double simulated(const Plan& plan, const Calibration& calibration) {
  const IterationTasks tasks = build_iteration(plan, calibration);
  std::int64_t longest = 0;
  for (const Task& task : tasks.graph.tasks) {
    if (task.phase == Phase::reshard) longest = std::max(longest, task.duration_ns);
  }
  return static_cast<double>(longest) * 1e-9;
}

std::optional<Plan> planned(PlanRequest request, const std::vector<std::string>& words) {
  Problems problems;
  request.fixed = parse_settings(words, problems);
  const auto outcome = make_plan(request, problems);
  if (!outcome || std::holds_alternative<Infeasible>(*outcome)) return std::nullopt;
  return std::get<Plan>(*outcome);
}

/// Experts and stages that lie on several nodes come over the network, and their one holder sends
/// all copies of them. The closed form takes stages as equal, and what holders of experts send as
/// spread evenly: a rollout of unequal stages, or one whose expert groups are larger than a trained
/// replica cut by tensor parallelism, may be priced a few percent below its bound.
TEST(ReshardLimits, ExpertsAcrossNodesAreNotPricedFasterThanTheirBound) {
  int across = 0;
  for (const char* const model : {"qwen3-235b-a22b", "qwen3-30b-a3b", "mixtral-8x7b"}) {
    PlanRequest request = request_for(model, "h100-64", "grpo-7b-1k");
    request.engine = "any";
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{},
          {"placement=colocated", "actor.ep=8", "actor.pp=8", "actor.tp=1", "rollout.ep=8"},
          {"placement=colocated", "actor.ep=8", "actor.pp=2", "rollout.tp=8"}}) {
      const auto plan = planned(request, words);
      if (!plan) continue;
      const auto limits = reshard_limits(*plan, request.calibration);
      ASSERT_EQ(limits.size(), 1);
      const double took = simulated(*plan, request.calibration);
      std::printf("%s %s: %.0f ms, at least %.0f ms\n", model, describe_layouts(*plan).c_str(),
                  took * 1e3, limits[0].bound.seconds.value * 1e3);
      if (plan->find(Role::actor)->ranks == plan->find(Role::rollout)->ranks) {
        ++across;
        const ParallelLayout& actor = plan->find(Role::actor)->layout;
        const ParallelLayout& rollout = plan->find(Role::rollout)->layout;
        const bool spread = actor.tp == 1 || rollout.ep <= actor.ep;
        const double below = rollout.pp > 1 ? 0.1 : spread ? 0.001 : 0.04;
        EXPECT_LE(limits[0].bound.seconds, took * (1 + below)) << model;
      }
    }
  }
  EXPECT_GT(across, 2);
}

TEST(ReshardLimits, NoPresetIsSimulatedFasterThanItsBound) {
  int plans = 0;
  for (const char* const cluster :
       {"a100-8", "a100-64", "a100-pcie-8", "a100-h100-64", "h100-8", "h100-64",
        "h100-64-roce-2to1", "h800-16", "h800-64", "h20-8", "h20-96", "h200-8", "h200-64", "b200-8",
        "b200-64", "l40s-8", "l40s-64", "dgx-h100"}) {
    for (const char* const workload : {"grpo-7b-1k", "ppo-7b-1k"}) {
      PlanRequest request = request_for("qwen2-7b", cluster, workload);
      if (request.cluster.gpus() > 64) request.cluster.nodes = 64 / request.cluster.gpus_per_node;
      if (request.cluster.gpus() > 16 && request.workload.algorithm == "ppo") continue;
      for (const std::vector<std::string>& words : {std::vector<std::string>{},
                                                    {"actor.tp=8", "rollout.tp=2"},
                                                    {"actor.tp=2", "rollout.tp=8"},
                                                    {"actor.pp=4", "rollout.tp=4"},
                                                    {"placement=standalone"}}) {
        const auto plan = planned(request, words);
        if (!plan) continue;
        ++plans;
        const auto limits = reshard_limits(*plan, request.calibration);
        ASSERT_EQ(limits.size(), 1);
        const double took = simulated(*plan, request.calibration);
        EXPECT_LE(limits[0].bound.seconds, took * (1 + 1e-9) + 1e-9)
            << cluster << " " << workload << " " << describe_layouts(*plan) << " "
            << limits[0].bound.narrowest().where;
        const bool moves = plan->reshard[0].total_received_bytes > 0;
        EXPECT_EQ(limits[0].bound.seconds > 0, moves);
      }
    }
  }
  std::printf("%d plans\n", plans);
  EXPECT_GT(plans, 100);
}

TEST(ReshardLimits, AreReachedWhereOnlyTheNarrowestPortCostsTime) {
  for (const auto& [actor, rollout, nodes] :
       {std::tuple{8, 2, 1}, {8, 1, 1}, {4, 2, 1}, {2, 1, 1}, {8, 4, 4}}) {
    PlanRequest request = request_for("qwen2-7b", "h100-64", "grpo-7b-1k");
    request.cluster.nodes = nodes;
    request.calibration.collectives = {
        {.collective = Collective::copy_engine, .ranks = 2, .bandwidth = BytesPerSecond{380e9}}};
    const auto plan = planned(
        request, {"actor.tp=" + std::to_string(actor), "actor.pp=1", "actor.dp_shard=1",
                  "actor.cp=1", "rollout.tp=" + std::to_string(rollout), "placement=colocated"});
    ASSERT_TRUE(plan);
    const auto limits = reshard_limits(*plan, request.calibration);
    const double bytes = static_cast<double>(plan->reshard[0].bytes_received.value);
    // Replicas on other nodes can help by the network cards; the plan leaves them alone.
    const double cards =
        nodes > 1 ? inter_node_bandwidth(request.cluster, request.calibration).value : 0;
    const double least = bytes / (380e9 + cards);
    EXPECT_NEAR(limits[0].bound.seconds, least, 1e-9 + 1e-3 * least);
    if (nodes > 1) continue;
    EXPECT_NEAR(simulated(*plan, request.calibration), limits[0].bound.seconds,
                2e-9 + 0.01 * limits[0].bound.seconds.value);
    // The prediction meets twice besides, which no copy has to, and waits for the busiest sender:
    // 28 heads on 8 ranks are 3 or 4 each.
    const Seconds barriers =
        2 * barrier_seconds(group_shape(plan->cluster,
                                        static_cast<int>(plan->find(Role::actor)->ranks.size()), 1),
                            plan->cluster, request.calibration);
    EXPECT_GE(limits[0].predicted - barriers, limits[0].bound.seconds * (1 - 1e-3) - Seconds{1e-9});
    EXPECT_LE(limits[0].predicted - barriers, limits[0].bound.seconds * 1.015 + Seconds{1e-9});
  }
}

TEST(ReshardLimits, ExplainSaysBoundPredictionAndRatio) {
  PlanRequest request = request_for("qwen2-7b", "h100-8", "grpo-7b-1k");
  const auto plan = planned(request, {"actor.tp=8", "rollout.tp=2", "placement=colocated"});
  ASSERT_TRUE(plan);
  const auto limits = reshard_limits(*plan, request.calibration);
  ASSERT_GT(limits[0].bound.seconds, 0);
  const double ratio = limits[0].predicted / limits[0].bound.seconds;
  EXPECT_GE(ratio, 1);
  EXPECT_LT(ratio, 1.2);
  const std::string text = explain(*plan, request.calibration, limits);
  EXPECT_NE(text.find("direct copies take at least"), std::string::npos) << text;
  const std::string json = explain_json(*plan, request.calibration, limits);
  EXPECT_NE(json.find("\"bound_s\""), std::string::npos) << json;
}

}  // namespace
}  // namespace tessera
