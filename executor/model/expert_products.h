// The MLPs of a rank's routed experts as one autograd node over rows that are sorted by expert.
//
// Grouped products where torch has them (experts that adjoin in one arena, strides of 16 bytes),
// else one product an expert. Gradients of weights as in layer_ops.h: straight into fp32 buffers.
// On torch's current device and stream; free functions.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>
#include <vector>

namespace tessera {

/// Rows of a matrix by expert: those of each one after another.
struct ExpertRows {
  torch::Tensor counts;            // int64 [experts], on the rows' device
  torch::Tensor ends;              // int32 [experts], their running sums
  std::vector<std::int64_t> host;  // counts on the host; empty until somebody has needed them

  /// Waits for the device where the host does not know them yet.
  const std::vector<std::int64_t>& on_host();
};
ExpertRows expert_rows(const torch::Tensor& counts);

/// A rank's experts, one after another: gate and up [columns, hidden], down [columns, hidden].
struct ExpertWeights {
  std::vector<torch::Tensor> gate_up;  // gate and up of the first, of the second, ...
  std::vector<torch::Tensor> down;
};

/// Whether the products of these experts are grouped ones, of which the host need not know whose
/// rows are how many. Precondition: at least one expert.
bool grouped(const ExpertWeights& weights);

/// silu(x gate') * (x up') down of each row by its expert; partial sums where experts are cut.
/// `recompute` makes the inner product again in the backward pass instead of keeping it.
torch::Tensor expert_mlp(const torch::Tensor& x, const ExpertRows& rows,
                         const ExpertWeights& weights, bool recompute = false);

}  // namespace tessera
