// The pieces of a decoder layer as single autograd nodes: fewer small operators, fewer copies.
//
// x is [tokens, features]. Weights that are leaves with a gradient buffer (fp32) get their
// gradients added to it by the node itself, in one matrix product with fp32 accumulation where the
// device has it; others get them returned. On a GPU the kernels of executor/kernels are used where
// they were built; the LibTorch path is their reference.
#pragma once

#include "executor/model/torch.h"

#include "executor/model/parallel_ops.h"

namespace tessera {

/// x / sqrt(mean(x^2) + epsilon) * weight over the last dim, statistics in fp32.
torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight, double epsilon);

/// sum = x + residual and its norm.
struct ResidualNorm {
  torch::Tensor sum, normed;
};
ResidualNorm add_rms_norm(const torch::Tensor& x, const torch::Tensor& residual,
                          const torch::Tensor& weight, double epsilon);

struct Projections {
  torch::Tensor a, b, c;
};

/// x times several column-parallel weights [out_i, in] (undefined ones are skipped), each with its
/// bias where defined. Backward: the gradient of x is summed over the weights and over ranks once.
Projections column_parallel(const torch::Tensor& x, const Projections& weights,
                            const Projections& biases, const TensorParallel& tp);

/// x [tokens, in_i] times a row-parallel weight stored [in_i, out], summed over ranks, plus a
/// replicated bias where defined.
torch::Tensor row_parallel(const torch::Tensor& x, const torch::Tensor& weight,
                           const torch::Tensor& bias, const TensorParallel& tp);

/// row_parallel of silu(gate) * up; with `recompute` the product is made again in the backward pass
/// instead of being kept.
torch::Tensor gated_row_parallel(const torch::Tensor& gate, const torch::Tensor& up,
                                 const torch::Tensor& weight, const torch::Tensor& bias,
                                 const TensorParallel& tp, bool recompute = false);

/// silu(gate) * up.
torch::Tensor swiglu(const torch::Tensor& gate, const torch::Tensor& up);

/// Rows `ids` of `table`, zero where `outside` (undefined: none), summed over ranks.
torch::Tensor embed(const torch::Tensor& table, const torch::Tensor& ids,
                    const torch::Tensor& outside, const TensorParallel& tp);

/// Where gradients of `weight` are to be added: its fp32 gradient buffer, or nullopt.
std::optional<torch::Tensor> gradient_buffer(const torch::Tensor& weight);

/// While on, products of this thread overwrite the gradient buffers of matrices instead of being
/// added to them: for layers whose every matrix gets one product in buffers that were not cleared.
void overwrite_matrix_gradients(bool on);

/// buffer (fp32) += a x b (= a x b while overwriting), operands of any type.
void add_product(const torch::Tensor& buffer, const torch::Tensor& a, const torch::Tensor& b);

}  // namespace tessera
