// SPDX-License-Identifier: GPL-3.0-or-later
// Plans that the tests show: searched once, small enough for milliseconds.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "cost_models/calibration.h"
#include "cost_models/documents/problem.h"
#include "cost_models/fit/derived_calibration.h"
#include "gui/document/plan_answer.h"
#include "planner/plan/plan.h"

namespace tessera::gui {

/// The digit models on four CPU ranks, PPO, TP2 x PP2 -> TP2 x DP2.
inline const Plan& digits_plan() {
  static const Plan plan = [] {
    PlanAnswer found =
        answer(PlanQuery{.model = "tiny-qwen2-digits",
                         .cluster = "local-cpu",
                         .workload = "ppo-digits",
                         .fixed = {"actor.tp=2", "actor.pp=2", "rollout.tp=2", "rollout.dp=2"}});
    if (const auto* problems = std::get_if<Problems>(&found.result)) {
      for (const Problem& problem : *problems) ADD_FAILURE() << to_string(problem);
    }
    return *std::get<SharedPlan>(found.result);
  }();
  return plan;
}

/// The digit model on CPU ranks of a cluster written into `folder`, with too little memory for it.
inline PlanQuery infeasible_query(const std::filesystem::path& folder) {
  std::ofstream(folder / "tiny.yaml") << "version: 1\nname: tiny\ngpu: cpu\nmemory_gib: 0.001\n"
                                         "peak_tflops_bf16: 0.1\nhbm_gb_s: 10\n"
                                         "gpus_per_node: 2\nnodes: 1\n"
                                         "intra_node:\n  link: shared memory\n"
                                         "  gb_s_per_gpu_one_way: 5\n";
  return {.model = "tiny-qwen2-digits",
          .cluster = (folder / "tiny.yaml").string(),
          .workload = "grpo-digits"};
}

/// A small model on one node with every choice free: a winner and runner-ups.
inline const Plan& free_plan() {
  static const Plan plan = *std::get<SharedPlan>(
      answer(PlanQuery{.model = "qwen2.5-0.5b", .cluster = "h100-8", .workload = "ppo-7b-1k"})
          .result);
  return plan;
}

/// A 7B model on two nodes of eight GPUs, critic apart from the actor.
inline const Plan& split_plan() {
  static const Plan plan = *std::get<SharedPlan>(
      answer(PlanQuery{.model = "qwen2.5-7b",
                       .cluster = "h100-64",
                       .workload = "ppo-7b-1k",
                       .nodes = 2,
                       .fixed = {"placement=actor+reference | critic", "actor.tp=4"}})
          .result);
  return plan;
}

/// As the window's models take it.
inline SharedPlan shared(const Plan& plan) { return std::make_shared<const Plan>(plan); }

/// The constants that a plan was priced with.
inline std::optional<Calibration> calibration_of(const Plan& plan) {
  Problems problems;
  return calibration_named(plan.provenance.calibration, plan.cluster, problems);
}

}  // namespace tessera::gui
