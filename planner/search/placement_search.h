// Branch and bound over the block sizes and front points of one placement.
//
// Sizes of each block in the order of their bounds, so that a good plan is found early: a first
// pass over narrow fronts finds one, the second proves or improves it. Deterministic.
#pragma once

#include <cstdint>

#include "planner/search/exact.h"
#include "planner/search/fronts.h"

namespace tessera {

/// The best plan of `placement`; Solution::found() is false where nothing fits. `pruned` counts the
/// branches that bounds cut off.
Solution search_placement(const SearchProblem& problem, const Placement& placement, int policy_lag,
                          Fronts& fronts, std::int64_t& pruned);

}  // namespace tessera
