// Whose weights a rank gets where an engine gathers every tensor whole before ranks take their
// part.
//
// Pure functions over the parameter table, exact in elements. A collective passes bytes on in its
// own way; here each belongs to the rank that held it before. Where several hold the same it is of
// the one that shares the receiver's copy of the model, then its node, then the lowest.
#pragma once

#include <cstdint>
#include <vector>

#include "cost_models/layout/parameter_table.h"
#include "cost_models/layout/rank_map.h"

namespace tessera {

struct WeightFlow {
  int from = 0, to = 0;  // equal: held before
  std::int64_t elements = 0;
  bool operator==(const WeightFlow&) const = default;
};

/// Every rank of the trainer gathers the model: by `from`, then `to`. The elements of a receiver
/// add up to the model.
std::vector<WeightFlow> gathered_flows(const ParameterTable& table, const RankMap& trainer,
                                       int ranks_per_node);

/// The trainer's first rank gathers the model and sends all of it to each of `receivers`, which are
/// none of the trainer's.
std::vector<WeightFlow> broadcast_flows(const ParameterTable& table, const RankMap& trainer,
                                        const std::vector<int>& receivers, int ranks_per_node);

}  // namespace tessera
