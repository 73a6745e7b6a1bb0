// One micro-batch on one rank: its kernels and what it communicates.
//
// Pure.
#pragma once

#include <array>

#include "cost_models/compute.h"
#include "cost_models/spec/units.h"
#include "planner/pricing/role/role_layout.h"
#include "planner/pricing/role/shards.h"

namespace tessera {

/// Kernels of a layer of each kind, and at the model's two ends: they depend on how layers are cut
/// and run, and not on where the ranks of a group lie.
struct MicroBatchKernels {
  std::array<Work, kLayerKinds> forward, backward;
  Work embedding, head_forward, head_backward;
  Work tower_forward, tower_backward;  // of the images of its prompts, before the embedding
};

/// With what is communicated, likewise.
struct MicroBatchCost : MicroBatchKernels {
  std::array<Seconds, kLayerKinds> forward_comm{}, backward_comm{};  // between the kernels
  // Shards that run beside a layer: what sticks out, and what the kernels lose to them.
  std::array<Seconds, kLayerKinds> forward_shards{}, backward_shards{};
  std::array<Seconds, kLayerKinds> forward_fetched{};  // of forward_shards: from host memory
  FetchedEnds ends;                                    // of a forward pass
  Seconds embedding_tp, head_tp, head_backward_tp;
  /// The engine's software works while the device waits, before the first chunk of a forward pass
  /// and after the last one's (SoftwareTraits).
  Seconds software, software_backward;
};

/// What the engine's software takes once in a call, beside its passes (SoftwareTraits).
Seconds software_seconds(const Assumptions& assumed, CallKind kind);

/// What a fixed order (planner/engines/fixed_order.h) costs a layer besides in a forward pass over
/// whole texts; 0 where the engine has none.
Seconds fixed_order_pass_seconds(const Assumptions& assumed, const RankModel& rank,
                                 const TokenBatch& batch);

/// `scored` tokens have log-probabilities or values. Without `training` there is no backward pass.
/// `plain`: those of the same batch without recomputation, of which the rest is made; nullptr =
/// they are not known.
MicroBatchKernels micro_batch_kernels(const RoleLayout& layout, Recompute recompute,
                                      const TokenBatch& batch, const TokenBatch& scored,
                                      bool training, const MicroBatchKernels* plain = nullptr);

/// With its kernels, or these worked out.
MicroBatchCost price_micro_batch(const RoleLayout& layout, const Candidate& candidate,
                                 const MicroBatchKernels& kernels, const TokenBatch& batch,
                                 const TokenBatch& scored, bool training);
MicroBatchCost price_micro_batch(const RoleLayout& layout, const Candidate& candidate,
                                 const TokenBatch& batch, const TokenBatch& scored, bool training);

/// Sets what the layers' shards of the candidate add to a micro-batch that knows the rest.
void set_shards(MicroBatchCost& cost, const RoleLayout& layout, const Candidate& candidate,
                bool training);
/// The mean of `count` micro-batches, of which the last alone reduces its gradients
/// (RolePlan::no_sync). `cost`: of one that trains and reduces them.
void reduce_last_alone(MicroBatchCost& cost, const RoleLayout& layout, const Candidate& candidate,
                       double count);

}  // namespace tessera
