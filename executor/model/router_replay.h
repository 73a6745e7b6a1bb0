// Which experts tokens go to, noted in one pass and replayed in another: routing replay of Zheng et
// al. 2025 (arXiv 2507.18071) and, from the rollout, of Ma et al. 2025 (arXiv 2510.11370).
//
// Only the choice is replayed. Its weights are the running pass' own, computed from its logits at
// these experts, so that gradients reach the router. A value: layers that are computed again in the
// backward pass keep it; the tensors are shared and lie on the weights' device.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>

namespace tessera {

/// Of one layer; of a chunk's layers with experts, whose tensors have them as a first dimension.
struct RouterReplay {
  /// int16 [rows, k]: the experts of each row; a row of -1 keeps the router's own choice.
  /// Undefined: all rows do.
  torch::Tensor replayed;
  torch::Tensor noted;  // int16 [rows, k]: gets the experts of each row; undefined: nobody asks
  /// int64 [2]: adds the rows that were replayed, and those of them for which the router itself
  /// would now choose other experts. Undefined: nobody asks.
  torch::Tensor compared;

  RouterReplay of_layer(std::int64_t index) const;
  RouterReplay of_rows(std::int64_t first, std::int64_t count) const;
};

/// The experts of these rows, int64 [rows, k], where the router itself chooses `own`.
torch::Tensor replayed_choice(const torch::Tensor& own, const RouterReplay& replay);

}  // namespace tessera
