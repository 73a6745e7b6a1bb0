// Tasks of the micro-batches of one replica on the stages of its pipeline.
//
// The sender of hidden states (or of their gradients) waits until they have arrived, as the
// executor's exchanges do; transfers occupy the communication stream of the sender. 1F1B is
// Narayanan et al. 2021, sec. 2.2: stage s of p runs min(m, p - s - 1) forwards, then one forward
// and one backward in turn, then the rest of the backwards.
#pragma once

#include <vector>

#include "simulator/engine/plan_tasks.h"
#include "simulator/engine/role_costs.h"

namespace tessera {

/// Seconds as integer nanoseconds, to the nearest.
std::int64_t nanoseconds(double seconds);

struct PipelinePass {
  const RoleCosts& costs;
  Phase phase = Phase::old_log_prob;
  int replica = 0;
  const std::vector<MicroBatch>& micro_batches;
};

/// A forward pass that starts after `ready`; returns the last task of every stage.
std::vector<TaskId> add_forward_pass(TaskGraph& graph, const PipelinePass& pass, TaskId ready);

/// Forward and backward under 1F1B; appends what is in flight when.
std::vector<TaskId> add_training_pass(TaskGraph& graph, const PipelinePass& pass, TaskId ready,
                                      std::vector<InFlight>& in_flight);

}  // namespace tessera
