// When the actor's and the rollout's weights of a rank lie in one memory.
//
// Plain functions of a plan and its run; no torch.
#pragma once

#include "executor/run/run_config.h"
#include "planner/plan/plan.h"

namespace tessera {

/// True when training weights can be views of the rollout's on every rank: what a rank trains is
/// what it generates with. That needs
/// - a minimal reshard between equal types, without a narrower wire: bytes as they are;
/// - memory that stays where peers have mapped it: no `unmap`, no offload of parameters;
/// - whole tensors at the actor: FSDP keeps shards in memory of its own;
/// - nobody who generates while the actor is updated: no schedule that is one step off;
/// and has to spare something: fp32 weights of an optimizer that is neither cut (ZeRO) nor on the
/// host are its master weights, which a view would need apart.
bool shares_memory(const Plan& plan, const ReshardConfig& config);

}  // namespace tessera
