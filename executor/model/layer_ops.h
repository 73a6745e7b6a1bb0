// The products of a decoder layer as single autograd nodes: fewer small operators, fewer copies.
//
// x is [tokens, features]. Weights that are leaves with a gradient buffer (fp32) get their
// gradients added to it by the node itself, in one matrix product with fp32 accumulation where the
// device has it; others get them returned. On a GPU the kernels of executor/kernels are used where
// they were built; the LibTorch path is their reference. With SumOrder::fixed (which is without
// gradient) the products are those of ordered_ops.h. Where adapters are given their products are
// added before sums over ranks, which then are as many as without them; activations travel by
// collectives then, and nothing is in the fixed order.
#pragma once

#include "executor/tensor/torch.h"

#include "executor/weights/low_rank.h"
#include "executor/weights/parallel_ops.h"

namespace tessera {

struct Projections {
  torch::Tensor a, b, c;
};

/// What is added to each of several products; nullptr = nothing.
struct ProjectionAdapters {
  const LowRank *a = nullptr, *b = nullptr, *c = nullptr;

  bool any() const { return a != nullptr || b != nullptr || c != nullptr; }
};

/// x times several column-parallel weights [out_i, in] (undefined ones are skipped), each with its
/// bias where defined. Backward: the gradient of x is summed over the weights and over ranks once.
Projections column_parallel(const torch::Tensor& x, const Projections& weights,
                            const Projections& biases, const TensorParallel& tp,
                            const ProjectionAdapters& adapters = {});

/// x [tokens, in_i] times a row-parallel weight stored [in_i, out], summed over ranks, plus a
/// replicated bias where defined.
torch::Tensor row_parallel(const torch::Tensor& x, const torch::Tensor& weight,
                           const torch::Tensor& bias, const TensorParallel& tp,
                           const LowRank* adapter = nullptr);

/// row_parallel of silu(gate) * up; with `recompute` the product is made again in the backward pass
/// instead of being kept, unless an adapter needs it there.
torch::Tensor gated_row_parallel(const torch::Tensor& gate, const torch::Tensor& up,
                                 const torch::Tensor& weight, const torch::Tensor& bias,
                                 const TensorParallel& tp, bool recompute = false,
                                 const LowRank* adapter = nullptr);

/// x [tokens, in] times one replicated weight [out, in].
torch::Tensor replicated_product(const torch::Tensor& x, const torch::Tensor& weight);

/// silu(gate) * up, and its gradients [of gate, of up] (without a graph of their own).
torch::Tensor swiglu(const torch::Tensor& gate, const torch::Tensor& up);
torch::autograd::variable_list swiglu_backward(const torch::Tensor& g, const torch::Tensor& gate,
                                               const torch::Tensor& up);

/// Rows `ids` of `table`, zero where `outside` (undefined: none), summed over ranks. Row `padding`
/// (negative: none) has no gradient, as with torch's padding_idx.
torch::Tensor embed(const torch::Tensor& table, const torch::Tensor& ids,
                    const torch::Tensor& outside, std::int64_t padding, const TensorParallel& tp);

}  // namespace tessera
