// Rotary position embedding with the frequency scalings of transformers 5.17
// (modeling_rope_utils.py): none, linear, llama3, yarn; longrope is refused.
//
// A head's elements i and i + head_dim / 2 form the pairs that rotate.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>

#include "cost_models/spec/model_spec.h"

namespace tessera {

/// fp32 [head_dim / 2], on the CPU. An Error where the scaling is longrope.
torch::Tensor rope_frequencies(const RopeSpec& rope, std::int64_t head_dim);

/// cos and sin of every token's angles, [tokens, head_dim / 2], scaled by the attention factor.
struct RopeTable {
  torch::Tensor cos, sin;
};
RopeTable rope_table(const torch::Tensor& frequencies, double attention_factor,
                     const torch::Tensor& positions, at::ScalarType dtype);

/// Rotates x [tokens, heads, head_dim]; differentiable.
torch::Tensor apply_rope(const torch::Tensor& x, const RopeTable& table);

}  // namespace tessera
