// The request and the solution that a plan stands for: the way back from a plan to the search.
//
// Pure functions.
#pragma once

#include "planner/request/candidate.h"
#include "planner/request/request.h"
#include "planner/request/solution.h"

namespace tessera {

struct Plan;
struct RolePlan;

/// The request that `plan` answers, its objective too, with nothing fixed: to search again.
/// `calibration` must be the plan's.
PlanRequest request_of(const Plan& plan, Calibration calibration);

/// request_of with the engine's traits, and the element types and the way to reshard that the plan
/// states: to price the plan as it is.
PlanRequest priced_request_of(const Plan& plan, Calibration calibration);

/// Placement, sizes, first ranks and candidates of a plan, without times.
Solution solution_of(const Plan& plan);

/// The candidate that a role of a plan stands for; its token limits are that of the calls that
/// train, and the largest of the others.
Candidate candidate_of(const Plan& plan, const RolePlan& role);

}  // namespace tessera
