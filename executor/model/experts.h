// A layer's routed experts: the router, the experts' MLPs, and the shared expert beside them.
//
// As transformers 5.17 has them (models/mixtral, qwen2_moe, qwen3_moe: *TopKRouter, *Experts,
// *SparseMoeBlock). A rank holds its columns of its experts, of which every `etp` neighbours of the
// tensor-parallel ranks have all. Where these are fewer than tp they bring their own rows or, in
// generation, a share of all. Expert parallelism deals experts to ranks; tokens travel to those
// that they choose (expert_rows.h), or in generation's even passes to all. Collective over the
// groups of all three.
#pragma once

#include "executor/tensor/torch.h"

#include "executor/comm/communicator.h"
#include "executor/model/router_losses.h"
#include "executor/model/router_replay.h"
#include "executor/weights/parallel_ops.h"
#include "executor/weights/weights.h"

namespace tessera {

struct ExpertOptions {
  Communicator* group = nullptr;  // expert parallelism; nullptr: this rank holds all experts
  Communicator* parts = nullptr;  // ParallelGroups::etp: with sequence parallelism, else unused
  RouterZLoss z_loss;
  RouterBalance balance;  // of this layer
  /// Every rank of `group` brings as many rows, and all have grouped products: rows are gathered,
  /// each rank does them by its own experts, and sums are scattered. No size reaches the host, so
  /// that a graph may capture it. Without gradient.
  bool even = false;
  RouterReplay replay;             // of all rows that the tensor-parallel ranks have together
  bool recompute_product = false;  // selective recomputation
};

/// The feed-forward half of a layer with experts, without norm and residual: normed [rows, hidden],
/// with sequence parallelism this rank's rows. Precondition: rows.routed().
torch::Tensor routed_mlp(const Weights& weights, const LayerRows& rows, const torch::Tensor& normed,
                         const TensorParallel& tp, const ExpertOptions& options = {});

/// Whether all products of the rank's routed experts are grouped ones (expert_products.h); true
/// without experts.
bool grouped_experts(const Weights& weights);

}  // namespace tessera
