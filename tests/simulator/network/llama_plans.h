// Plans of a Llama 8B on nodes of H100 whose cards and leaf switches a test chooses.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "planner/explain/planner.h"
#include "planner/request/settings.h"
#include "simulator/tasks/task_graph.h"
#include "tests/simulator/sample_plans.h"

namespace tessera {

/// nullopt = nothing like it fits.
inline std::optional<Plan> plan_if_any(std::int64_t cards, double oversubscription,
                                       const std::vector<std::string>& fixed,
                                       ClusterSpec cluster = cluster_of(8, 4, 80)) {
  Workload workload = workload_of("grpo", KlPlace::reward, false);
  workload.prompts_per_step = 64;
  workload.samples_per_prompt = 4;
  workload.prompt_tokens = 512;
  workload.response_tokens = {512, 0.5, 1024};
  workload.mini_batches = 2;
  cluster.nics_per_node = cards;
  cluster.oversubscription = oversubscription;
  PlanRequest request = request_of(llama_8b(), workload, cluster);
  Problems problems;
  request.fixed = parse_settings(fixed, problems);
  const auto outcome = make_plan(request, problems);
  const Plan* const plan = outcome ? std::get_if<Plan>(&*outcome) : nullptr;
  return plan != nullptr ? std::optional(*plan) : std::nullopt;
}

inline Plan planned(std::int64_t cards, double oversubscription,
                    const std::vector<std::string>& fixed,
                    const ClusterSpec& cluster = cluster_of(8, 4, 80)) {
  const auto plan = plan_if_any(cards, oversubscription, fixed, cluster);
  EXPECT_TRUE(plan.has_value());
  return plan.value_or(Plan{});
}

inline Calibration constants() {
  Problems problems;
  return find_calibration("h100", problems).value_or(Calibration{});
}

inline std::int64_t end_of(const std::vector<TaskRun>& runs) {
  std::int64_t end = 0;
  for (const TaskRun& one : runs) end = std::max(end, one.end_ns);
  return end;
}

}  // namespace tessera
