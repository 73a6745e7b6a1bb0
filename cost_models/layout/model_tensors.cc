#include "cost_models/layout/model_tensors.h"

#include "cost_models/layout/sharding.h"

namespace tessera {
namespace {

ShardedTensor sharded(const Parameter& parameter, DType dtype) {
  return {.name = parameter.name,
          .shape = parameter.shape,
          .element_bytes = Bytes{size_of(dtype)},
          .outer_dim = shard_dim(parameter)};
}

std::vector<Holding> stored(const Parameter& parameter, const RankMap& map) {
  std::vector<Holding> holdings;
  for (size_t i = 0; i < map.ranks.size(); ++i) {
    if (const auto box = stored_box(parameter, map.layout, map.coords[i])) {
      holdings.push_back({map.ranks[i], *box});
    }
  }
  return holdings;
}

}  // namespace

ShardedTensor model_tensor(const Parameter& parameter, const RankMap& from, const RankMap& to,
                           DType dtype) {
  ShardedTensor tensor = sharded(parameter, dtype);
  tensor.source = stored(parameter, from);
  for (size_t i = 0; i < to.ranks.size(); ++i) {
    if (const auto box = compute_box(parameter, to.layout, to.coords[i])) {
      tensor.destination.push_back({to.ranks[i], *box});
    }
  }
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
    tensor.source = stored(parameter, from);
    for (const int rank : to.ranks) tensor.destination.push_back({rank, whole(parameter.shape)});
  }
  return tensors;
}

}  // namespace tessera
