// SPDX-License-Identifier: GPL-3.0-or-later
// Plans that the tests show: searched once, small enough for milliseconds.
#pragma once

#include <gtest/gtest.h>

#include "gui/models/plan_query.h"

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
    return std::get<Plan>(std::move(found.result));
  }();
  return plan;
}

/// A small model on one node with every choice free: a winner and runner-ups.
inline const Plan& free_plan() {
  static const Plan plan = std::get<Plan>(
      answer(PlanQuery{.model = "qwen2.5-0.5b", .cluster = "h100-8", .workload = "ppo-7b-1k"})
          .result);
  return plan;
}

/// A 7B model on two nodes of eight GPUs, critic apart from the actor.
inline const Plan& split_plan() {
  static const Plan plan = std::get<Plan>(
      answer(PlanQuery{.model = "qwen2.5-7b",
                       .cluster = "h100-64",
                       .workload = "ppo-7b-1k",
                       .nodes = 2,
                       .fixed = {"placement=actor+reference | critic", "actor.tp=4"}})
          .result);
  return plan;
}

}  // namespace tessera::gui
