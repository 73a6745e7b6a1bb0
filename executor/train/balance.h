// The losses of routers beside the loss of the scores (executor/model/router_losses.h), of a batch.
//
// Load balancing: of each micro-batch of a replica, over all its tokens and layers wherever they
// are; micro-batches count by their tokens, whichever replica has them. The z loss: over the tokens
// of the whole batch. All ranks of a stage call alike.
#pragma once

#include "executor/batching/batch.h"
#include "executor/comm/groups.h"
#include "executor/model/router_losses.h"
#include "executor/train/packing.h"

namespace tessera {

struct RouterLossOptions {
  double balance = 0, z = 0;      // coefficients; 0 = without it
  std::int64_t batch_tokens = 0;  // over all replicas
};

/// What this rank's routers add to gradients over one batch. Precondition: a model with experts, or
/// no coefficients.
class RouterLosses {
 public:
  /// Keeps references.
  RouterLosses(const Weights& weights, const ParallelGroups& groups,
               const RouterLossOptions& options);

  /// PipelineShape::sums: the choices that the load-balancing loss counts.
  std::int64_t sums() const;
  /// `tokens`: of the micro-batch, on all ranks.
  RouterBalance balance_of(const PackedMicroBatch& packed, std::int64_t tokens, int chunk) const;
  /// After the chunk's forward pass: the choices of its layers by all tokens, which
  /// StageOutput::sums are; undefined where nobody asks. Collective over those who have other
  /// tokens of the micro-batch.
  torch::Tensor choices_of(const RouterBalance& balance) const;
  RouterZLoss z_loss_of(const PackedMicroBatch& packed) const;

  /// After the backward passes: adds the weighted losses, and without their weights
  /// "router_aux_loss" and "router_z_loss", the latter a mean over layers, as Megatron-LM reports
  /// it. Collective over the role where a coefficient is not 0.
  void add_to(UpdateResult& result) const;

 private:
  bool cuts_tokens() const;
  int alike() const;
  std::int64_t first_row(const PackedMicroBatch& packed) const;

  const Weights& weights_;
  const ParallelGroups& groups_;
  RouterLossOptions options_;
  std::int64_t layers_;              // of the model that have experts
  torch::Tensor balance_, squares_;  // fp32 [1]: what backward passes of this rank add up
};

}  // namespace tessera
