// 1F1B, plain and interleaved: the order in which the stages of a pipeline work.
//
// Narayanan et al. 2021, section 2.2. Plain: stage s of p runs min(m, p - s - 1) forwards, then one
// forward and one backward in turn, then the rest of the backwards. With virtual stages every rank
// holds `chunks` pieces of the model, piece c of rank s being stage c * stages + s. Pure functions;
// every rank computes the same table. The executor runs it, the simulator times it, and the planner
// prices what micro-batches that differ add to it (uneven_batches.h).
#pragma once

#include <optional>
#include <vector>

namespace tessera {

struct PipelineOp {
  bool forward = true;
  int chunk = 0, micro_batch = 0;
  bool operator==(const PipelineOp&) const = default;
};

/// Operations of one rank, in order. With `training` false only forwards.
std::vector<PipelineOp> interleaved_order(int stages, int chunks, int micro_batches, int stage,
                                          bool training);

/// Those of every rank, so that none waits for ever: plain 1F1B with one chunk, else interleaved.
std::vector<std::vector<PipelineOp>> pipeline_orders(int stages, int chunks, int micro_batches,
                                                     bool training);

/// ticks[t][s]: what rank s does in tick t. Everything an operation needs was made in earlier
/// ticks, so that one exchange after each tick moves all messages without deadlock.
using PipelineTicks = std::vector<std::vector<std::optional<PipelineOp>>>;
PipelineTicks interleaved_ticks(int stages, int chunks, int micro_batches, bool training);

/// The rank and operation that consumes what `op` on `stage` makes; nullopt at the model's ends.
struct PipelineTarget {
  int stage = 0;
  PipelineOp op;
};
std::optional<PipelineTarget> consumer(int stages, int chunks, int stage, const PipelineOp& op);

}  // namespace tessera
