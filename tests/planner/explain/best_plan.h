// The plan that others are asked about.
#pragma once

#include <variant>

#include "cost_models/documents/problem.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "tests/planner/planned.h"

namespace tessera {

inline const Plan& best_plan() {
  static const Plan plan = [] {
    Problems problems;
    return std::get<Plan>(*make_plan(request_for("h200-8"), problems));
  }();
  return plan;
}

}  // namespace tessera
