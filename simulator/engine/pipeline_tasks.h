// Tasks of the micro-batches of a role's replicas on the stages of their pipelines.
//
// Replicas go through the same operations in the same order (interleave.h). The sender of hidden
// states (or of their gradients) waits until they have arrived, as the executor's exchanges do;
// transfers occupy the communication stream of the sender. Under FSDP the shard groups gather a
// layer's parameters before each pass and, after backward, reduce its gradients, for all their
// replicas at once (so do ZeRO-2's gradients): where the engine overlaps them, the first gather and
// the last reduction of a pass stick out, all others run beside the kernels of other layers.
#pragma once

#include <vector>

#include "simulator/engine/plan_tasks.h"
#include "simulator/engine/role_costs.h"
#include "simulator/engine/task_links.h"

namespace tessera {

/// Seconds as integer nanoseconds, to the nearest.
std::int64_t nanoseconds(double seconds);

struct PipelinePass {
  const RoleCosts& costs;
  Phase phase = Phase::old_log_prob;
  const std::vector<std::vector<MicroBatch>>& micro_batches;  // of each replica
  TaskLinks& links;
};

/// The ends of a pass, for what follows it.
struct PassEnd {
  std::vector<std::vector<TaskId>> last;  // tasks that nothing of the pass follows, by stage
  std::vector<double> last_backward_s;    // of the slowest replica's last micro-batch, by stage
};

/// A forward pass; replica r starts after ready[r].
PassEnd add_forward_pass(TaskGraph& graph, const PipelinePass& pass,
                         const std::vector<TaskId>& ready);

/// Forward and backward under (interleaved) 1F1B; appends what is in flight when.
PassEnd add_training_pass(TaskGraph& graph, const PipelinePass& pass,
                          const std::vector<TaskId>& ready, std::vector<InFlight>& in_flight);

}  // namespace tessera
