// When the actor's and the rollout's weights of a rank lie in one memory.
//
// Plain functions of a plan and its run; no torch.
#pragma once

#include "executor/config/run_config.h"

namespace tessera {

struct Plan;

/// shares_weights (planner/plan/shared_weights.h) of the plan, where the run neither narrows the
/// wire nor unmaps what the plan keeps.
bool shares_memory(const Plan& plan, const ReshardConfig& config);

}  // namespace tessera
