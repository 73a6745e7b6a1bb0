// vLLM's servers in a run: started on the rollout's ranks before the roles are made, and given the
// actor's weights.
//
// Every function is collective over the run's ranks. One thread per rank.
#pragma once

#include <memory>

#include "executor/loop/worker.h"

namespace tessera {

/// Returns when the servers are ready, and asleep: they measure the devices' free memory as they
/// start, which nobody else must use then.
std::unique_ptr<VllmRollout> start_rollout_servers(const Plan& plan, const ParameterTables& tables,
                                                   const RunConfig& config,
                                                   const RunContext& context);

/// Lets the servers map the memory of the actor's weights.
void offer_weights(Worker& worker);

/// Waits for the actor's weights on this rank, gives torch's unused memory back, and moves them.
ReshardReport move_weights_to_servers(Worker& worker);

}  // namespace tessera
