// Configurations imported, or the problems for which they are not.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "cost_models/documents/problem.h"
#include "planner/interop/import.h"
#include "planner/plan/plan.h"

namespace tessera {

inline ImportOptions on(const Plan& plan) { return {.cluster = plan.cluster}; }

inline ImportOptions h800() {
  Problems none;
  return {.cluster = *read_cluster_spec("h800-64", none)};
}

inline Imported must_import(std::string_view text, const std::string& file,
                            const ImportOptions& options) {
  Problems problems;
  auto imported = import_config(text, file, options, problems);
  EXPECT_TRUE(imported.has_value()) << Error(ExitCode::bad_input, problems).what();
  return imported ? *std::move(imported) : Imported{};
}

inline Problems refusals(std::string_view text, const std::string& file) {
  Problems problems;
  EXPECT_FALSE(import_config(text, file, h800(), problems).has_value());
  EXPECT_FALSE(problems.empty());
  return problems.empty() ? Problems{{}} : problems;
}

}  // namespace tessera
