// The bytes that a reshard has to bring to each rank, and who holds them.
#pragma once

#include <vector>

#include "cost_models/layout/parameter_table.h"
#include "cost_models/layout/rank_map.h"
#include "cost_models/spec/dtype.h"
#include "cost_models/spec/units.h"

namespace tessera {

/// Bytes that a destination lacks and any of `holders` has.
struct ReshardDemand {
  int destination = 0;
  std::vector<int> holders;  // ascending, without the destination
  Bytes bytes;
  bool operator==(const ReshardDemand&) const = default;
};

/// All demands of a model's reshard, those of one destination and set of holders together; sorted
/// by destination, then holders.
std::vector<ReshardDemand> reshard_demands(const ParameterTable& table, const RankMap& from,
                                           const RankMap& to, DType dtype);

}  // namespace tessera
