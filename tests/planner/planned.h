// Requests, and the plans or refusals that they lead to.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/fit/derived_calibration.h"
#include "planner/engines/engine.h"
#include "planner/explain/infeasible.h"
#include "planner/explain/planner.h"
#include "planner/explain/report.h"
#include "planner/plan/plan.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"
#include "tests/planner/sample_requests.h"

namespace tessera {

inline Plan planned(const PlanRequest& request) {
  Problems problems;
  const auto outcome = make_plan(request, problems);
  EXPECT_TRUE(problems.empty()) << to_string(problems[0]);
  if (!outcome) return {};
  if (const auto* infeasible = std::get_if<Infeasible>(&*outcome)) {
    ADD_FAILURE() << describe(*infeasible);
    return {};
  }
  return std::get<Plan>(*outcome);
}

inline Infeasible refused(const PlanRequest& request) {
  Problems problems;
  const auto outcome = make_plan(request, problems);
  EXPECT_TRUE(problems.empty());
  const auto* infeasible = outcome ? std::get_if<Infeasible>(&*outcome) : nullptr;
  EXPECT_NE(infeasible, nullptr);
  return infeasible != nullptr ? *infeasible : Infeasible{};
}

inline PlanRequest digits_request() {
  Workload workload = workload_of("grpo", KlPlace::none, false);
  workload.prompts_per_step = 32;
  workload.samples_per_prompt = 16;
  ClusterSpec cluster = cluster_of(4, 1, 4);
  cluster.device.name = "cpu";
  PlanRequest request = request_of(tiny_model(), workload, cluster, "cpu");
  Problems problems;
  const std::vector<std::string> words = {"actor.tp=2", "actor.pp=2", "rollout.tp=2",
                                          "rollout.dp=2"};
  request.fixed = parse_settings(words, problems);
  return request;
}

inline PlanRequest ppo_request(int nodes) {
  Workload workload = workload_of("ppo", KlPlace::reward, true);
  workload.prompts_per_step = 1024;
  workload.samples_per_prompt = 1;
  workload.prompt_tokens = 1024;
  workload.response_tokens = {1024, 0, 1024};
  workload.mini_batches = 4;
  return request_of(llama_8b(), workload, cluster_of(8, nodes, 80));
}

inline PlanRequest request_for(const std::string& cluster) {
  Problems problems;
  PlanRequest request;
  request.models["actor"] = {*read_model_spec("qwen2.5-7b", problems), "qwen2.5-7b", ""};
  request.cluster = *read_cluster_spec(cluster, problems);
  request.workload = *read_workload("grpo-7b-1k", problems);
  request.calibration = *calibration_for_cluster(request.cluster, problems);
  EXPECT_TRUE(problems.empty());
  return request;
}

/// The request as another engine would run it.
inline PlanRequest by_engine(PlanRequest request, const std::string& engine) {
  request.engine = engine;
  request.traits = traits_of(engine);
  return request;
}

/// What `--fix` makes of these words.
inline FixedSettings settings(const std::vector<std::string>& words) {
  Problems problems;
  FixedSettings fixed = parse_settings(words, problems);
  EXPECT_TRUE(problems.empty());
  return fixed;
}

}  // namespace tessera
