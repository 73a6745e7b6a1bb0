// Every way to share the GPUs among roles.
//
// Pure functions.
#pragma once

#include <vector>

#include "cost_models/spec/workload.h"
#include "planner/plan/placement.h"

namespace tessera {

/// All set partitions of `roles` (restricted growth order); the rollout stays with the actor. With
/// `disaggregated`, each of them again with the rollout in a block of its own.
std::vector<Placement> all_placements(const std::vector<Role>& roles, bool disaggregated = false);

}  // namespace tessera
