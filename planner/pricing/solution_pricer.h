// The phases and the step of layouts that stay as they are, under one calibration after another.
//
// Keeps what no constant changes; one thread. Seconds.
#pragma once

#include <vector>

#include "planner/plan/phase_seconds.h"
#include "planner/pricing/evaluate.h"
#include "planner/pricing/iteration.h"
#include "planner/request/request.h"
#include "planner/request/solution.h"

namespace tessera {

struct PricedPhases {
  PhaseSeconds seconds{};
  Seconds step_s;
};

class SolutionPricer {
 public:
  /// Keeps a copy of the solution. `deal`: of a plan (plan_pricing.h).
  SolutionPricer(const PlanRequest& request, Solution solution, const Deal& deal = {});

  PricedPhases price(const Calibration& calibration);

 private:
  CostEvaluator costs_;
  Solution solution_;
  std::vector<ScheduledCall> schedule_;
  Iteration iteration_;
};

}  // namespace tessera
