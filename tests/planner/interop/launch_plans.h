// Plans that launch files are written for.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "cost_models/documents/problem.h"
#include "planner/interop/export.h"
#include "planner/plan/plan.h"
#include "tests/planner/interop/random_plans.h"

namespace tessera {

inline const std::string kInteropTests =
    std::string(TESSERA_SOURCE_DIR) + "/tests/planner/interop/";

/// A plan that Tessera itself runs, on `gpus` GPUs.
inline Plan tessera_plan(int gpus) {
  RandomPlans plans("verl-megatron", 3);
  Plan plan = plans.next();
  while (static_cast<int>(plan.roles[0].ranks.size()) != gpus) plan = plans.next();
  plan.engine = "tessera";
  for (RolePlan& role : plan.roles) {
    role.layout = {{.tp = 1, .dp = gpus}};
    role.layout.stages = even_stages(plan.models.at(role.model).spec.layers, 1, 1);
    role.rank_order = RankOrder::contiguous;
    role.recompute = Recompute::none;
    role.offload = {};
  }
  plan.reshard[0].keep = true;
  plan.environment = {{"NCCL_NVLS_ENABLE", "0", "a number that has to stay a string"},
                      {"PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", "a colon"}};
  return plan;
}

inline std::string text_of(const Plan& plan, const ExportTarget& target, std::string_view name,
                           const ExportOptions& options = {}) {
  Problems problems;
  const auto made = export_plan(plan, target, options, problems);
  EXPECT_TRUE(made.has_value()) << Error(ExitCode::bad_input, problems).what();
  for (const ExportedFile& file : made.value_or(Export{}).files) {
    if (file.name == name) return file.text;
  }
  ADD_FAILURE() << "no file " << name;
  return {};
}

/// A plan for verl on `gpus` GPUs.
inline Plan verl_plan(const char* engine, int gpus) {
  RandomPlans plans(engine, 3);
  Plan plan = plans.next();
  while (static_cast<int>(plan.roles[0].ranks.size()) != gpus) plan = plans.next();
  return plan;
}

}  // namespace tessera
