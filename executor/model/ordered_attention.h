// Attention in the fixed order (SumOrder::fixed): a query token sees the keys of its text one after
// another, in one kernel, whether it decodes, is a piece of a prompt, or a token of a packed batch.
//
// A packed batch is a cache whose pages have one token each. On the CPU fp32 by ordered_loops.h, on
// a GPU bf16 by kernels/ordered_attention.h. No gradients; on torch's current stream.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>
#include <span>

#include "executor/model/decoder.h"
#include "executor/model/paged_kernels.h"
#include "executor/tensor/rope.h"
#include "executor/weights/weights.h"

namespace tessera {

/// Throws Error{infeasible} with the reason where the fixed order cannot be kept: experts, context
/// parallelism; other weights than fp32 on the CPU and bf16 on a GPU; there also heads that the
/// kernel does not take.
void require_fixed_order(const Weights& weights);

/// Whether the GPU's kernel takes heads of this size.
bool ordered_heads(std::int64_t head_dim);

/// The rows' queries [tokens, heads, head_dim] attend to keys up to their own, the last `window` of
/// them where it is not 0; the result has q's shape.
torch::Tensor attend_in_order(const fused::PagedRows& rows, const HeadRange& heads,
                              const torch::Tensor& q, const fused::PagedCache& cache,
                              std::int64_t window);

/// The heads of some tokens by the GPU's kernel: keys and values go to `places` of the cache, the
/// queries come out, [tokens, heads, head_dim]. `rope` by position. Precondition: fused::usable.
torch::Tensor project_and_store(const Weights& weights, const LayerRows& rows,
                                const torch::Tensor& normed, const RopeTable& rope,
                                const torch::Tensor& positions, const torch::Tensor& places,
                                const fused::PagedCache& cache, const TensorParallel& tp);

/// Whole sequences, packed one after another, as rows of a cache whose pages have one token.
fused::PagedRows packed_rows(std::span<const std::int64_t> lengths, torch::Device device);

/// How one packed batch is attended to in the fixed order.
struct OrderedPlan {
  fused::PagedRows rows;
  torch::Tensor positions, places;  // int64 [tokens]
  RopeTable rope;                   // on a GPU by position, else by token
};
OrderedPlan plan_in_order(const Weights& weights, const PackedTokens& tokens);

/// Projections, rotation and attention of one layer: [tokens, heads * head_dim].
torch::Tensor attend_layer_in_order(const Weights& weights, const LayerRows& rows,
                                    const torch::Tensor& normed, const OrderedPlan& plan,
                                    const TensorParallel& tp);

}  // namespace tessera
