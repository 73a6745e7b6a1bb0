// The losses of routers, which join where their logits and probabilities pass.
//
// The z loss keeps logits small (Zoph et al. 2022, ST-MoE, eq. 5; z_loss_func of Megatron-LM's
// moe_utils.py): the mean over tokens of logsumexp(logits)^2, of every layer with experts, added
// up. A token's part depends on no other token and no other layer.
//
// The load-balancing loss is load_balancing_loss_func of transformers over the tokens of a
// micro-batch and all layers with experts: experts x sum over experts of (how often it was chosen
// by row) (its mean probability), a row being a token in a layer. Choices have no gradient, so that
// all other layers and tokens are known to a probability by their sum of choices alone, which must
// be there when the backward passes begin.
//
// So the gradients of both join on the way back, under any layout and any recomputation, where
// their values are added up, too.
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

/// The same of the load-balancing loss, of a chunk's layers with experts or of one of them; without
/// tensors nobody asks.
struct RouterBalance {
  std::int64_t tokens = 0, first = 0;  // as RouterZLoss has them
  /// Of the objective by (a row's probability of an expert) x (choices of that expert by all rows).
  double slope = 0;
  /// fp32 [layers, experts], of one layer [experts]: each writes how often its rows on this rank
  /// chose each expert.
  torch::Tensor choices;
  torch::Tensor all_choices;  // fp32 [experts]: of all rows, when backward passes begin
  torch::Tensor value;        // fp32 [1]: backward passes add what the objective has of the loss

  RouterBalance of_layer(std::int64_t index) const;
};

/// Logits [rows, experts] as they are; their gradient gets the loss's added.
torch::Tensor with_z_loss(const torch::Tensor& logits, const RouterZLoss& loss);

/// Probabilities [rows, experts], fp32, as they are, whose rows choose the experts `chosen` (int64
/// [rows, k]); their gradient gets the loss's added.
torch::Tensor with_balance(const torch::Tensor& probabilities, const torch::Tensor& chosen,
                           const RouterBalance& loss);

}  // namespace tessera
