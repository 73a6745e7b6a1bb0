// Which roles share GPUs.
//
// A plain value.
#pragma once

#include <vector>

#include "cost_models/spec/workload.h"

namespace tessera {

struct Plan;

/// Roles of each block of GPUs, in the order of their first roles; the rollout is in the actor's,
/// or alone in one of its own (disaggregated).
using Placement = std::vector<std::vector<Role>>;
/// Roles on the same ranks, in whatever order, are one block.
Placement placement_of(const Plan& plan);

}  // namespace tessera
