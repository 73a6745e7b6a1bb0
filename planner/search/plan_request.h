// What a plan was asked with, and what it answered: the way back from a plan to the search.
//
// Pure functions.
#pragma once

#include "planner/plan/plan.h"
#include "planner/search/exact.h"
#include "planner/search/request.h"

namespace tessera {

/// The request that `plan` answers, its objective too, with nothing fixed: to search again.
/// `calibration` must be the plan's.
PlanRequest request_of(const Plan& plan, Calibration calibration);

/// The same with the engine's traits and the element types that the plan states: to price the plan
/// as it is.
PlanRequest priced_request_of(const Plan& plan, Calibration calibration);

/// Placement, sizes, first ranks and candidates of a plan, without times.
Solution solution_of(const Plan& plan);

}  // namespace tessera
