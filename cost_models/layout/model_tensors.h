// A model's parameters as tensors that change from one layout to another. Pure functions.
#pragma once

#include <vector>

#include "cost_models/layout/parameter_table.h"
#include "cost_models/layout/rank_map.h"
#include "cost_models/layout/reshard_plan.h"

namespace tessera {

/// What ranks keep of a parameter (stored_box), and what they compute with (compute_box), ascending
/// by their place in the map; ranks without a part are left out.
std::vector<Holding> stored_holdings(const Parameter& parameter, const RankMap& map);
std::vector<Holding> compute_holdings(const Parameter& parameter, const RankMap& map);

/// `from` holds the parameter's stored_box, `to` needs its compute_box.
ShardedTensor model_tensor(const Parameter& parameter, const RankMap& from, const RankMap& to,
                           DType dtype);

/// The reshard of a whole model: model_tensor of every row of the table, in its order.
std::vector<ShardedTensor> model_tensors(const ParameterTable& table, const RankMap& from,
                                         const RankMap& to, DType dtype);

/// Tensors gathered whole by every destination and sliced there: what `reshard.mode: full` moves.
std::vector<ShardedTensor> full_gather_tensors(const ParameterTable& table, const RankMap& from,
                                               const RankMap& to, DType dtype);

}  // namespace tessera
