// Token limits between the doublings that the search tries.
//
// Pure; tokens, seconds and bytes of a rank.
#pragma once

#include "planner/request/request.h"
#include "planner/request/solution.h"
#include "planner/search/exact.h"

namespace tessera {

/// The solution with token limits raised by whole longest sequences, short of twice as many, where
/// that is quicker and fits beside the roles that share the GPUs; role by role, all else as it is.
/// Limits that are fixed stay. Sequences decoded at once are not solved again.
Solution with_refined_limits(const SearchProblem& problem, const PlanRequest& request,
                             const Solution& solution);

}  // namespace tessera
