// Where Tessera's executor keeps one memory for what a rank trains and what it generates with.
//
// The rule and the bytes that it saves, of a plan; what a run's own configuration adds is said in
// executor/config/weight_memory.h. Pure functions; bytes.
#pragma once

#include "cost_models/spec/units.h"

namespace tessera {

struct Plan;

/// True when training weights can be views of the rollout's on every rank: what a rank trains is
/// what it generates with. That needs
/// - a minimal reshard between equal types: bytes as they are;
/// - memory that stays where peers have mapped it: nothing unmapped, no offload of parameters;
/// - whole tensors at the actor: FSDP keeps shards in memory of its own;
/// - nobody who generates while the actor is updated: no schedule that is one step off;
/// and has to spare something: fp32 weights of an optimizer that is neither cut (ZeRO) nor on the
/// host are its master weights, which a view would need apart.
bool shares_weights(const Plan& plan);

/// Bytes of training weights that the rank needs no memory for beside the rollout's: of tensors of
/// which its rollout shard holds all that it trains.
Bytes shared_weight_bytes(const Plan& plan, int rank);

/// The least of them over all ranks that train and generate; 0 where the weights are not shared.
/// What the planner's peak, which counts both, is too high by at least.
Bytes least_shared_weight_bytes(const Plan& plan);

}  // namespace tessera
