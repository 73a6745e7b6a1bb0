// The losses of routers beside the loss of the scores.
//
// Load balancing: transformers' load_balancing_loss_func over the tokens of one micro-batch;
// micro-batches count by their tokens, data-parallel ranks alike. Only where balance_refusal has
// nothing against it. Collective over tp where tokens are cut. The z loss: router_z_loss.h over the
// tokens of a whole batch, whose tokens count alike on any rank.
#pragma once

#include "executor/batching/loss_parts.h"
#include "executor/comm/groups.h"
#include "executor/model/experts.h"
#include "executor/train/packing.h"
#include "executor/train/pipeline.h"

namespace tessera {

/// What the micro-batch's routers are asked for: `rows` are those that this rank's layers see.
RouterLoads balance_loads(const Weights& weights, std::int64_t tokens, std::int64_t rows);

/// Appends coefficient * share * loss to what is differentiated, `share` being the micro-batch's
/// part of the tokens of this replica's batch; adds it to the loss, and share * loss as
/// "router_aux_loss".
void add_balance(const Weights& weights, const ParallelGroups& groups, const RouterLoads& loads,
                 double coefficient, double share, StageOutput& output, LossParts& parts);

/// What this rank's routers add to gradients for `coefficient` times the z loss of a batch of so
/// many tokens, over all replicas.
RouterZLoss z_loss_of(const Weights& weights, double coefficient, std::int64_t batch_tokens);
/// The same for one micro-batch.
RouterZLoss on_rows(const RouterZLoss& loss, const Weights& weights,
                    const PackedMicroBatch& packed);
/// After the backward passes: adds the weighted loss, and its mean over layers as "router_z_loss",
/// which is what Megatron-LM reports. Collective over the role where the coefficient is not 0.
void add_z_loss(const Weights& weights, const ParallelGroups& groups, const RouterZLoss& loss,
                double coefficient, UpdateResult& result);

}  // namespace tessera
