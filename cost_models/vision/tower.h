// What the images of prompts cost beside the tokens that they become: a vision tower's operations,
// seconds and bytes.
//
// Pure functions; any thread. A tower is priced as what it is: layers of attention without a mask
// and of MLPs over an image's patches, and products that make tokens of patches. It is whole on
// every rank that runs it (Megatron-Core and FSDP cut its weights, if anything, and vLLM may cut
// it besides), and one rank looks at all images of its micro-batch, also where several share a
// sequence by context parallelism (verl 0.9.1 cuts sequences after the embedding). Seconds and
// bytes of one rank; tokens as the language model sees them.
#pragma once

#include <optional>

#include "cost_models/calibration.h"
#include "cost_models/compute.h"
#include "cost_models/memory.h"
#include "cost_models/rank_model.h"
#include "cost_models/spec/families.h"
#include "cost_models/spec/workload.h"

namespace tessera {

/// A model's tower on a rank.
struct TowerRank {
  RankModel blocks;  // as a model of their own, without a vocabulary
  VisionSpec tower;
  VisionTower kind = VisionTower::none;
};

/// nullopt: the model has no tower.
std::optional<TowerRank> tower_rank(const ModelSpec& model, DType type, const EngineTraits& traits);

/// So many images, each of `tokens` tokens.
struct ImageBatch {
  double images = 0, tokens = 0;
};

/// Those of so many sequences; with adapters, which towers have none of here, nothing flows back.
ImageBatch images_of(const Workload& workload, double sequences);

/// Forward FLOPs of one image of so many tokens, products of its patches' embedding included; as
/// torch.utils.flop_counter counts them on transformers' modules (tests/cost_models/vision). Of
/// windows those are counted that are whole.
double tower_flops(const ModelSpec& model, double tokens);

/// Model FLOPs of a sequence of so many tokens, forward: compute.h's of its tokens, and its
/// images'.
double forward_flops_per_sequence(const ModelSpec& model, const Workload& workload, double tokens);

Work tower_forward(const TowerRank& rank, const ImageBatch& batch, const Calibration& calibration);
/// Gradients of all weights; full recomputation adds a forward pass of the blocks.
Work tower_backward(const TowerRank& rank, const ImageBatch& batch, Recompute recompute,
                    const Calibration& calibration);

/// What is kept of `in_flight` micro-batches of these images for their backward passes, and what
/// one block makes besides.
MemoryUse tower_training_memory(const TowerRank& rank, const ImageBatch& batch, Recompute recompute,
                                double in_flight);

/// What a call whose language model uses so much uses with the tower of its images. The tower's
/// pass comes before all others and its backward pass after them: what is kept of `in_flight`
/// micro-batches (0 = nothing flows back) lies beside the model's, and what is only made takes its
/// turn.
MemoryUse beside_tower(MemoryUse model, const TowerRank& rank, const ImageBatch& batch,
                       Recompute recompute, double in_flight);

}  // namespace tessera
