// The z loss of routers, which keeps their logits small (Zoph et al. 2022, ST-MoE, eq. 5;
// z_loss_func of Megatron-LM's moe_utils.py): the mean over tokens of logsumexp(logits)^2, of every
// layer with experts, added up.
//
// A token's part depends on no other token and no other layer. So its gradient joins where the
// logits pass, under any layout and any recomputation, and its value is added up on the way back.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>

namespace tessera {

/// What is asked of the routers of one forward pass. A value: layers that are computed again keep
/// it.
struct RouterZLoss {
  /// Of all rows the first `tokens` count, the others only fill up; this rank's begin with `first`.
  std::int64_t tokens = 0, first = 0;
  double slope = 0;       // of the objective by logsumexp(logits)^2 of a token; 0 = nobody asks
  torch::Tensor squares;  // fp32 [1], on the device: backward passes add the tokens' squares
};

/// Logits [rows, experts] as they are; their gradient gets the loss's added.
torch::Tensor with_z_loss(const torch::Tensor& logits, const RouterZLoss& loss);

}  // namespace tessera
