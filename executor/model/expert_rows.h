// How a layer's tokens become rows by expert, and rows become tokens again: sorted, spread, sent to
// the ranks that hold the experts, and summed by the router's weights.
//
// Differentiable, with one gather each way and no atomic sums: the same bits in every run.
// With expert parallelism collective over its group, in equal order on all ranks, backward too.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/model/expert_products.h"

namespace tessera {

/// The choices of n tokens, k each, sorted by expert; choice j of token t is number t k + j.
struct SortedChoices {
  std::int64_t per_token = 1;
  torch::Tensor order;   // int64 [n k]: the choice in each place
  torch::Tensor places;  // int64 [n k]: the place of each choice
  torch::Tensor counts;  // int64 [experts]: choices of each expert
};
/// chosen: int64 [tokens, k], of `experts`.
SortedChoices sort_choices(const torch::Tensor& chosen, std::int64_t experts);

/// x [tokens, hidden] as one row a choice, in the sorted order.
torch::Tensor spread(const torch::Tensor& x, const SortedChoices& choices);
/// Each token's rows times its weights [tokens, k], summed in the order of its choices.
torch::Tensor combine(const torch::Tensor& rows, const torch::Tensor& weights,
                      const SortedChoices& choices);

/// What every rank of an expert-parallel group sends to every other for one layer.
struct Dispatch {
  Communicator* group = nullptr;
  std::vector<std::int64_t> sent, received;  // rows by peer
  torch::Tensor order, places;  // int64: rows by peer that arrived, sorted by this rank's experts
  ExpertRows rows;              // of this rank's experts
};
/// Experts are dealt to the ranks by the split rule. Waits for the device: the sizes of messages
/// are the host's.
Dispatch plan_dispatch(const SortedChoices& choices, Communicator& group);

/// Sorted rows go to the ranks that hold their experts and arrive sorted by them; and back.
torch::Tensor send_to_experts(const torch::Tensor& sorted, const Dispatch& dispatch);
torch::Tensor send_back(const torch::Tensor& rows, const Dispatch& dispatch);

}  // namespace tessera
