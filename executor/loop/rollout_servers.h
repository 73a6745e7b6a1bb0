// A run's vLLM servers on one rank: made from the plan before the rank has weights of its own, told
// where they are, and brought the actor's in every step.
//
// All functions are collective over the run's ranks.
#pragma once

#include <memory>

#include "executor/loop/worker.h"

namespace tessera {

/// Returns when the servers are ready, and asleep: they measure the devices' free memory as they
/// start, which nobody else must use then. Throws Error(missing) where one does not come.
std::unique_ptr<VllmRollout> start_rollout_servers(const Plan& plan, const ParameterTables& tables,
                                                   const RunConfig& config,
                                                   const RunContext& context);

/// Lets the servers map the memory of the actor's weights. Throws Error(missing) where that cannot
/// be mapped on some rank, or a server has no place for them.
void offer_weights(Worker& worker);

/// Waits for the actor's weights on this rank, gives torch's unused memory back, and moves them.
ReshardReport move_weights_to_servers(Worker& worker);

}  // namespace tessera
