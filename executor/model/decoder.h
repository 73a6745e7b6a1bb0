// The forward pass of the dense decoders (Llama, Mistral, Qwen2, Qwen3) on one pipeline stage.
//
// Batches are packed: the tokens of all sequences one after another, no padding. Activations are
// [tokens, hidden] in the weights' dtype. Differentiable where the weights require gradients.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <span>
#include <vector>

#include "executor/model/weights.h"

namespace tessera {

struct PackedTokens {
  torch::Tensor ids, positions;       // int64 [tokens], on the weights' device
  std::vector<std::int64_t> lengths;  // of each sequence; they sum to `tokens`

  std::int64_t tokens() const { return ids.size(0); }
};

/// Packs sequences whose positions count from 0.
PackedTokens pack_tokens(std::span<const std::vector<std::int64_t>> sequences,
                         torch::Device device);

/// The layers of this rank's stage (chunk `chunk` of it): from token ids when the chunk is the
/// first of the model (`hidden` is ignored), else from the previous stage's output; with the final
/// norm when it is the last. Collective over the tensor-parallel group.
torch::Tensor stage_forward(const Weights& weights, const ParallelGroups& groups,
                            const PackedTokens& tokens, const torch::Tensor& hidden = {},
                            int chunk = 0);

bool is_first_chunk(const Weights& weights, int chunk);
bool is_last_chunk(const Weights& weights, int chunk);

}  // namespace tessera
