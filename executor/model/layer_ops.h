// The pieces of a decoder layer as single autograd nodes: fewer small operators, fewer copies.
//
// x is [tokens, features]. `tp` may be nullptr (no tensor parallelism).
#pragma once

#include <torch/torch.h>

#include "executor/comm/communicator.h"

namespace tessera {

/// x / sqrt(mean(x^2) + epsilon) * weight over the last dim, statistics in fp32.
torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight, double epsilon);

struct Projections {
  torch::Tensor a, b, c;
};

/// x times several column-parallel weights [out_i, in] (undefined ones are skipped), each with its
/// bias where defined. Backward: the gradient of x is summed over the weights and all-reduced once.
Projections column_parallel(const torch::Tensor& x, const Projections& weights,
                            const Projections& biases, Communicator* tp);

/// x [tokens, in_i] times a row-parallel weight stored [in_i, out], all-reduced, plus a replicated
/// bias where defined.
torch::Tensor row_parallel(const torch::Tensor& x, const torch::Tensor& weight,
                           const torch::Tensor& bias, Communicator* tp);

/// silu(gate) * up.
torch::Tensor swiglu(const torch::Tensor& gate, const torch::Tensor& up);

}  // namespace tessera
