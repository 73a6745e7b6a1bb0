// Inputs that several commands read, with every problem thrown at once.
#pragma once

#include <optional>
#include <string>

#include "cost_models/calibration.h"
#include "planner/plan/plan.h"

namespace tessera {

Plan read_plan_or_throw(const std::string& file);

/// The calibration named, or the one shipped for the cluster's device (or derived from the
/// nearest). Throws Error (bad_input).
Calibration calibration_for(const ClusterSpec& cluster, const std::string& where);

/// The calibration named; else that with which the plan was made, where it can still be found; else
/// that of the cluster's device. Throws Error (bad_input).
Calibration calibration_of(const Plan& plan, const std::string& named);

/// What the run (its folder, or a file in it) was of, where RUN/plan.json runs something else than
/// `plan`; nullopt where it is the same, or the folder has none. Throws Error (bad_input).
std::optional<Plan> other_plan_of(const Plan& plan, const std::string& run);

}  // namespace tessera
