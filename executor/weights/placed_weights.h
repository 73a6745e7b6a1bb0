// Weights that lie in other weights' memory: views of a rollout's, for one.
//
// Their arena stays what arena_layout makes it, one slot behind another: the layout of gradients,
// of the optimizer's state and of files. Only the tensors lie elsewhere. Offsets in elements.
#pragma once

#include "executor/weights/weights.h"

namespace tessera {

/// make_weights without memory of its own: each slot lies in `storage` (1-D, `dtype`) where the
/// same slot of `places` does (SharedArena::training), with the values that are there. The storage
/// of the weights is all of it.
Weights make_placed_weights(const ParameterTable& table, const ParallelLayout& layout,
                            const RankCoord& coord, DType dtype, torch::Device device,
                            const torch::Tensor& storage, const ArenaLayout& places);

/// Where a held row begins in weights.storage, whoever made them. Not for FSDP's, whose rows lie in
/// no storage between uses.
std::int64_t place_of(const Weights& weights, int row);

}  // namespace tessera
