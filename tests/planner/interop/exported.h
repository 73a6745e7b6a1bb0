// Plans exported, and what became of them in files and in a shell.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "cost_models/documents/problem.h"
#include "planner/interop/export.h"
#include "planner/plan/plan.h"
#include "tests/planner/interop/random_plans.h"

namespace tessera {

inline Export must_export(const Plan& plan, const ExportTarget& target,
                          const ExportOptions& options = {}) {
  Problems problems;
  const auto made = export_plan(plan, target, options, problems);
  EXPECT_TRUE(made.has_value()) << Error(ExitCode::bad_input, problems).what();
  return made.value_or(Export{});
}

inline std::string text_of(const Export& made, std::string_view name) {
  for (const ExportedFile& file : made.files) {
    if (file.name == name) return file.text;
  }
  ADD_FAILURE() << "no file " << name;
  return {};
}

inline std::string output_of(const std::string& command, int* status = nullptr) {
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  char buffer[4096];
  while (const std::size_t size = fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, size);
  const int code = pclose(pipe);
  if (status != nullptr) *status = code;
  return text;
}

inline Plan tessera_plan() {
  Plan plan = RandomPlans("verl-megatron", 3).next();
  plan.engine = "tessera";
  for (RolePlan& role : plan.roles) {
    const int world = static_cast<int>(role.ranks.size());
    role.layout = {{.tp = 1, .dp = world}};
    role.layout.stages = even_stages(plan.models.at(role.model).spec.layers, 1, 1);
    role.rank_order = RankOrder::contiguous;
    role.recompute = Recompute::none;
    role.offload = {};
  }
  plan.reshard[0].keep = true;
  return plan;
}

}  // namespace tessera
