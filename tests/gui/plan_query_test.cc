// SPDX-License-Identifier: GPL-3.0-or-later
// Questions of the window: their answers, and what is kept of one for the next.
#include <gtest/gtest.h>

#include "planner/explain/infeasible.h"
#include "planner/request/describe.h"
#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

TEST(PlanQuery, FewerGpusKeepTheirShareOfNetworkCards) {
  ClusterSpec cluster{.gpus_per_node = 8, .nodes = 4, .nics_per_node = 8};
  cluster = resized(cluster, 2, 4);
  EXPECT_EQ(cluster.nodes, 2);
  EXPECT_EQ(cluster.gpus_per_node, 4);
  EXPECT_EQ(cluster.nics_per_node, 4);
  EXPECT_EQ(resized(cluster, 0, 0), cluster);
}

TEST(PlanQuery, UnknownNamesAreProblemsOfAllFilesAtOnce) {
  const PlanAnswer found = answer(PlanQuery{"qwen2.5-7x", "h100-65", "ppo-8b"});
  const auto& problems = std::get<Problems>(found.result);
  EXPECT_GE(problems.size(), 3u);
}

TEST(PlanQuery, WhatDoesNotFitComesBackWithReasonsAndAFix) {
  const PlanAnswer found = answer(
      PlanQuery{.model = "llama3.1-70b", .cluster = "l40s-8", .workload = "ppo-7b-1k", .nodes = 1});
  const auto& infeasible = std::get<Infeasible>(found.result);
  EXPECT_FALSE(infeasible.reasons.empty());
}

// What a user changes one after the other, back again at the end.
TEST(KeptPlanner, AnswersEverySettingAsAPlanFromScratchInLessTime) {
  PlanQuery query{.model = "qwen2.5-7b", .cluster = "h100-64", .workload = "grpo-7b-1k"};
  KeptPlanner kept;
  EXPECT_TRUE(std::holds_alternative<Plan>(kept.answer(query).result));
  const std::vector<std::vector<std::string>> settings{{"rollout.tp=2"},
                                                       {"actor.tp=4"},
                                                       {"actor.tp=4", "rollout.tp=4"},
                                                       {"placement=colocated"},
                                                       {"actor.cp=2"},
                                                       {"actor.zero=3"},
                                                       {"actor.tp=64"},
                                                       {}};
  const auto cpu_seconds = [](const auto& work) {
    const std::clock_t before = std::clock();
    auto made = work();
    return std::pair(std::move(made), static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC);
  };
  double kept_s = 0, anew_s = 0;
  for (const std::vector<std::string>& fixed : settings) {
    query.fixed = fixed;
    SCOPED_TRACE(fixed.empty() ? "nothing fixed" : fixed[0]);
    const auto [again, again_s] = cpu_seconds([&] { return kept.answer(query); });
    const auto [anew, scratch_s] = cpu_seconds([&] { return answer(query); });
    kept_s += again_s;
    anew_s += scratch_s;
    ASSERT_EQ(again.result.index(), anew.result.index());
    const Plan* const plan = std::get_if<Plan>(&again.result);
    if (plan == nullptr) continue;
    const Plan& other = std::get<Plan>(anew.result);
    EXPECT_EQ(plan->roles, other.roles);
    EXPECT_EQ(plan->prediction, other.prediction);
    EXPECT_EQ(plan->certificate.value, other.certificate.value);
  }
  EXPECT_LT(kept_s, anew_s);
  RecordProperty("kept_ms", static_cast<int>(1000 * kept_s));
  RecordProperty("from_scratch_ms", static_cast<int>(1000 * anew_s));
  query.workload = "ppo-7b-1k";
  EXPECT_EQ(std::get<Plan>(kept.answer(query).result).roles,
            std::get<Plan>(answer(query).result).roles);
}

TEST(PlanQuery, ARunnerUpPlannedInFullTakesTheTimeThatTheCertificateSays) {
  const Plan& plan = free_plan();
  ASSERT_FALSE(plan.certificate.runner_up.empty());
  for (const RunnerUp& other : plan.certificate.runner_up) {
    SCOPED_TRACE(other.placement + ": " + other.description);
    const PlanAnswer found = answer(plan, other);
    const Plan* full = std::get_if<Plan>(&found.result);
    ASSERT_NE(full, nullptr);
    EXPECT_NEAR(full->prediction.step_s, other.step_s, 1e-9 * other.step_s);
    EXPECT_EQ(describe_placement(*full), other.placement.substr(0, other.placement.find(',')));
    EXPECT_EQ(describe_layouts(*full), other.description);
  }
}

}  // namespace
}  // namespace tessera::gui
