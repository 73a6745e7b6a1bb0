// Which constants a plan's step depends on most, and by how much each leaves it open.
//
// Of the planner's own prices (planner/pricing/uncertainty.h). Pure functions; seconds.
#pragma once

#include <string>
#include <vector>

#include "cost_models/calibration.h"

namespace tessera {

struct Plan;

/// Of one constant, or one collective's whole curve.
struct StepSensitivity {
  std::string constant;
  double percent_s = 0;  // that a step takes more where the constant is one per cent larger
  double error = 0;      // of the constant, one standard deviation relative to it
  double error_s = 0;    // of the step by it alone
};

/// The largest first by seconds for a per cent.
std::vector<StepSensitivity> step_sensitivities(const Plan& plan, const Calibration& calibration);

/// The twelve largest; for programs all of them.
std::string to_text(const std::vector<StepSensitivity>& sensitivities);
std::string to_json(const std::vector<StepSensitivity>& sensitivities);

}  // namespace tessera
