// RMSNorm, alone and after a residual sum, as single autograd nodes.
//
// x is [tokens, features]; statistics are fp32. On a GPU the kernels of executor/kernels are used
// where they were built; the LibTorch path is their reference.
#pragma once

#include "executor/tensor/torch.h"

namespace tessera {

/// x / sqrt(mean(x^2) + epsilon) * weight over the last dim.
torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight, double epsilon);

/// sum = x + residual and its norm.
struct ResidualNorm {
  torch::Tensor sum, normed;
};
ResidualNorm add_rms_norm(const torch::Tensor& x, const torch::Tensor& residual,
                          const torch::Tensor& weight, double epsilon);

}  // namespace tessera
