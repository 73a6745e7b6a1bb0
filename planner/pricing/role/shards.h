// What shards of layers move beside their kernels (FSDP, ZeRO-2).
//
// Pure.
#pragma once

#include "cost_models/executor/share_buffers.h"
#include "cost_models/spec/units.h"
#include "cost_models/transformers/fsdp_pass.h"
#include "planner/pricing/role/role_layout.h"

namespace tessera {

/// One movement of shards: its time, and what kernels lose that run beside it.
struct MovedShards {
  Seconds seconds, lost;
  Seconds fetched = {};  // of `seconds`: from host memory; the rest is communication
  friend MovedShards operator+(MovedShards a, MovedShards b) {
    return {a.seconds + b.seconds, a.lost + b.lost, a.fetched + b.fetched};
  }
  friend MovedShards operator*(double count, MovedShards one) {
    return {count * one.seconds, count * one.lost, count * one.fetched};
  }
};

/// What shards of a layer (or of what lies outside the layers) move: parameters before either pass
/// (FSDP), gradients after backward (FSDP, ZeRO-2).
struct ShardSeconds {
  MovedShards gather, scatter;
};

/// Of a pass: time before its first layer and after its last backward that no layer hides.
struct ExposedEnds {
  Seconds before, after;
  Seconds fetched;  // of `before`: from host memory
};

/// What a layer's shards add to it, and the part of that which is fetched from host memory.
struct ShownShards {
  Seconds all, fetched;
};

/// One gather (of parameters) or reduction (of gradients) over a group, by what the engine does it
/// with.
MovedShards gather_shards(const Assumptions& assumed, Traffic bytes, GroupShape group);
MovedShards reduce_shards(const Assumptions& assumed, Traffic bytes, GroupShape group);

/// ZeRO-2 that reduces every layer after its backward pass. Under pipelines engines sum a step's
/// micro-batches before they reduce (torch's FSDP without gradient synchronisation; Llama Team
/// 2024, arXiv:2407.21783, sec. 3.3.2).
bool reduces_layers(const Candidate& candidate, const EngineTraits& traits);

/// Replicas that gather or reduce the layers of a pass together; 0 = layers are whole.
int sharing_replicas(const Candidate& candidate, const EngineTraits& traits, bool training);

/// Whether shards run beside the kernels of other layers.
bool shards_overlap(const Assumptions& assumed);

/// Whether each pass fetches the role's layers from host memory (ShardTraits::frozen_fetched).
bool fetches_layers(const RoleLayout& layout);

ShardSeconds layer_shards(const RoleLayout& layout, const Candidate& candidate, LayerKind kind);

/// Of a pass over a stage.
ExposedEnds exposed_ends(const RoleLayout& layout, const Candidate& candidate, int stage);

/// What each forward pass fetches of a reference beside its layers: nothing hides the embedding,
/// the last layer a part of the head.
struct FetchedEnds {
  ShownShards embedding, head;
};
/// None where both come once a call (exposed_ends). `last_layer`: how long that takes.
FetchedEnds fetched_ends(const RoleLayout& layout, const Candidate& candidate, Seconds last_layer);

/// What PyTorch's FSDP gathers of a role's modules.
GatheredParts gathered_parts(const RoleLayout& layout, const Candidate& candidate);

/// Gradients of micro-batches that reduce none, of a whole stage and of what its last backward pass
/// reduces last: FSDP1's root, else the embedding. FSDP1 sums them in the type of the passes, FSDP2
/// in that of their reduction.
struct UnreducedGradients {
  Bytes all, root;
};
UnreducedGradients unreduced_gradients(const RoleLayout& layout, const Candidate& candidate,
                                       const StageClass& stage);
/// What such a micro-batch gathers: nothing is copied to be reduced.
GatheredParts without_reduction(GatheredParts parts);

/// What of it stays on the device in a phase in which the role does not compute: FSDP1's root,
/// gathered by a pass that scores, is cut again by the next backward pass (torch 2.11,
/// _runtime_utils.py, _post_forward). verl 0.9.1 cuts it itself where `fsdp_size` is above 1
/// (EngineEvalModeCtx), which a plan that shards over all its ranks does not write.
Bytes left_gathered(const RoleLayout& layout, const Candidate& candidate, Phase phase);

/// A stage as the own executor's ranks share it.
SharedStage shared_stage(const RoleLayout& role, const Candidate& candidate,
                         const StageClass& stage);

/// What other engines' FSDP leaves to the root module: the head stays gathered from the forward
/// pass on, and its gradient whole until all layers are done.
Bytes gathered_head(const RoleModel& model, const Candidate& candidate, bool gradients);

/// What a layer's shards add to its `layer`: all they take, or what sticks out and what kernels
/// lose to them.
ShownShards beside_layer(const Assumptions& assumed, const ShardSeconds& moved, bool backward,
                         Seconds layer);

}  // namespace tessera
