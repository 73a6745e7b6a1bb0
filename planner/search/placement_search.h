// Branch and bound over the block sizes and front points of one placement.
//
// Sizes of each block in the order of their bounds, so that a good plan is found early: a first
// pass over narrow fronts finds one, the second proves or improves it. With several GPU types, over
// the views of the blocks (spec/node_groups.h) as well. Deterministic.
#pragma once

#include <cstdint>

#include "planner/search/exact.h"
#include "planner/search/view_fronts.h"

namespace tessera {

/// The best plan of `placement`; Solution::found() is false where nothing fits. `pruned` counts the
/// branches that bounds cut off.
Solution search_placement(const SearchProblem& problem, const Placement& placement, int policy_lag,
                          ViewFronts& fronts, std::int64_t& pruned);

}  // namespace tessera
