// Bytes that one rank of Tessera's own executor needs in a call, beside what it holds anyway.
//
// Pure functions of what executor/model, executor/tensor and executor/train allocate; any change
// there shows here. A call is looked at where its live memory is largest: where the loss has its
// logits, or in the backward pass of the stage's last layer, whichever is more. Workspaces of
// libraries belong to the reserve (Calibration::reserve_bytes). Bytes; any thread.
#pragma once

#include "cost_models/memory.h"
#include "cost_models/rank_model.h"

namespace tessera {

/// What autograd keeps of one layer for the backward pass, per token of the rank's own (with
/// sequence parallelism the residual stream is cut further). Dense layers with RMS norms: inputs
/// and outputs of both norms, rotated queries and keys, values, the attention's output and its
/// log-sum per head (fp32), gate, up and their product, and where queries and keys have norms of
/// their own the inputs of these. Of routed experts each row that a token becomes: its input, gate,
/// up and their product, its output; and the router's scores. Adapters beside frozen matrices keep
/// their matrices' inputs, whole where tokens are cut, the gated product whatever is run again, and
/// a row of their rank each. With Recompute::full the layer's input alone.
Traffic executor_saved_bytes(const RankModel& rank, Recompute recompute);

/// Activations, logits and workspace of a training call at its largest moment.
MemoryUse executor_training_bytes(const RankModel& rank, const StageLoad& load,
                                  Recompute recompute);

/// The same of a forward pass without gradients over `tokens` of the replica.
MemoryUse executor_scoring_bytes(const RankModel& rank, bool last_stage, double tokens);

}  // namespace tessera
