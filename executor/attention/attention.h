// Causal self-attention over packed sequences of different lengths.
//
// On the CPU, and on a GPU in fp32, sequences of similar length are padded to the right and handled
// as one batch: under a causal mask no token sees the padding, so no further mask is needed. On a
// GPU in bf16 the packed tokens go to cuDNN's kernels as they are, in fp16 (or where the kernels
// were not built) to torch's flash kernels.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>
#include <span>
#include <vector>

#include "executor/tensor/fused.h"
#include "executor/weights/weights.h"

namespace tessera {

/// Sequences of one padded length. `gather` are the token rows of the padded block [count * length]
/// (padding repeats row 0); undefined when the packed batch is that block already.
struct LengthGroup {
  std::int64_t count = 0, length = 0;
  torch::Tensor gather;
};

/// How one packed batch is attended to; made once per batch and used by every layer.
struct AttentionPlan {
  HeadRange heads;
  std::int64_t head_dim = 0;
  std::int64_t window = 0;  // 0 = full
  bool packed = false, flash = false;
  fused::AttentionBatch batch;  // packed
  torch::Tensor offsets;        // flash: int32 [sequences + 1]
  std::int64_t longest = 0;
  std::vector<LengthGroup> groups;
  torch::Tensor scatter;  // rows of the concatenated blocks, by token; undefined when in order
};

AttentionPlan plan_attention(const Weights& weights, std::span<const std::int64_t> lengths);
/// For other heads than the rank's own.
AttentionPlan plan_attention(const Weights& weights, std::span<const std::int64_t> lengths,
                             HeadRange heads);

/// q [tokens, heads, head_dim], k and v [tokens, kv heads, head_dim] of this rank. Returns
/// [tokens, heads * head_dim]; differentiable.
torch::Tensor attend(const AttentionPlan& plan, const torch::Tensor& q, const torch::Tensor& k,
                     const torch::Tensor& v);

/// k or v [.., kv heads (dim `dim`), ..] repeated so that it has one head per query head; the same
/// tensor when that is so already.
torch::Tensor repeat_kv(const torch::Tensor& x, const HeadRange& heads, std::int64_t dim);

}  // namespace tessera
