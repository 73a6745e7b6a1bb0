// The load-balancing loss of a micro-batch's routers, beside the loss of the scores.
//
// transformers' load_balancing_loss_func over the tokens of one micro-batch; micro-batches count by
// their tokens, data-parallel ranks alike. Only where balance_refusal has nothing against it.
// Collective over tp where tokens are cut.
#pragma once

#include "executor/batching/loss_parts.h"
#include "executor/comm/groups.h"
#include "executor/model/experts.h"
#include "executor/train/pipeline.h"

namespace tessera {

/// What the micro-batch's routers are asked for: `rows` are those that this rank's layers see.
RouterLoads balance_loads(const Weights& weights, std::int64_t tokens, std::int64_t rows);

/// Appends coefficient * share * loss to what is differentiated, `share` being the micro-batch's
/// part of the tokens of this replica's batch; adds it to the loss, and share * loss as
/// "router_aux_loss".
void add_balance(const Weights& weights, const ParallelGroups& groups, const RouterLoads& loads,
                 double coefficient, double share, StageOutput& output, LossParts& parts);

}  // namespace tessera
