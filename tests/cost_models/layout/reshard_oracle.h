// Checks a ReshardPlan element by element against what the tensors say, without any geometry of its
// own: every element is asked for its holders and for the ranks that need it.
#pragma once

#include <string>
#include <vector>

#include "cost_models/layout/reshard_plan.h"

namespace tessera {

/// The first invariant that the plan breaks, or empty. For at most 20 ranks and small tensors.
std::string broken_invariant(const std::vector<ShardedTensor>& tensors, const ReshardPlan& plan);

}  // namespace tessera
