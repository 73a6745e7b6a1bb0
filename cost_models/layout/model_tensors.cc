#include "cost_models/layout/model_tensors.h"

#include <algorithm>

#include "cost_models/layout/sharding.h"

namespace tessera {
namespace {

ShardedTensor sharded(const Parameter& parameter, DType dtype) {
  return {.name = parameter.name,
          .shape = parameter.shape,
          .element_bytes = Bytes{size_of(dtype)},
          .outer_dim = shard_dim(parameter)};
}

// `box_of` a rank's coordinates, which need not hold a part. Stages that lack a tensor, most of the
// ranks of a deep pipeline, are neither asked nor made room for.
template <typename BoxOf>
std::vector<Holding> holdings_of(const Parameter& parameter, const RankMap& map,
                                 const BoxOf& box_of) {
  std::vector<char> holding_stage;
  for (int stage = 0; stage < map.layout.pp; ++stage) {
    holding_stage.push_back(holds(parameter, map.layout, {.pp = stage}) ? 1 : 0);
  }
  const auto may_hold = [&](const RankCoord& coord) {
    return holding_stage[static_cast<size_t>(coord.pp)] != 0;
  };
  std::vector<Holding> holdings;
  holdings.reserve(
      static_cast<size_t>(std::count_if(map.coords.begin(), map.coords.end(), may_hold)));
  for (size_t i = 0; i < map.ranks.size(); ++i) {
    if (!may_hold(map.coords[i])) continue;
    if (const auto box = box_of(parameter, map.layout, map.coords[i])) {
      holdings.push_back({map.ranks[i], *box});
    }
  }
  return holdings;
}

}  // namespace

std::vector<Holding> stored_holdings(const Parameter& parameter, const RankMap& map) {
  return holdings_of(parameter, map, stored_box);
}

std::vector<Holding> compute_holdings(const Parameter& parameter, const RankMap& map) {
  return holdings_of(parameter, map, compute_box);
}

ShardedTensor model_tensor(const Parameter& parameter, const RankMap& from, const RankMap& to,
                           DType dtype) {
  ShardedTensor tensor = sharded(parameter, dtype);
  tensor.source = stored_holdings(parameter, from);
  tensor.destination = compute_holdings(parameter, to);
  return tensor;
}

std::vector<ShardedTensor> model_tensors(const ParameterTable& table, const RankMap& from,
                                         const RankMap& to, DType dtype) {
  std::vector<ShardedTensor> tensors;
  for (const Parameter& parameter : table.rows) {
    tensors.push_back(model_tensor(parameter, from, to, dtype));
  }
  return tensors;
}

std::vector<ShardedTensor> full_gather_tensors(const ParameterTable& table, const RankMap& from,
                                               const RankMap& to, DType dtype) {
  std::vector<ShardedTensor> tensors;
  for (const Parameter& parameter : table.rows) {
    ShardedTensor& tensor = tensors.emplace_back(sharded(parameter, dtype));
    tensor.source = stored_holdings(parameter, from);
    for (const int rank : to.ranks) tensor.destination.push_back({rank, whole(parameter.shape)});
  }
  return tensors;
}

}  // namespace tessera
