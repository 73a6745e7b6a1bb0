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

// `box_of` a rank's coordinates, which need not hold a part. In as much memory as there are parts:
// stages that lack a tensor are most of the ranks of a deep pipeline.
template <typename BoxOf>
std::vector<Holding> holdings_of(const Parameter& parameter, const RankMap& map,
                                 const BoxOf& box_of) {
  std::vector<Holding> holdings;
  holdings.reserve(map.ranks.size());
  for (size_t i = 0; i < map.ranks.size(); ++i) {
    if (const auto box = box_of(parameter, map.layout, map.coords[i])) {
      holdings.push_back({map.ranks[i], *box});
    }
  }
  if (holdings.size() < holdings.capacity()) holdings.shrink_to_fit();
  return holdings;
}

}  // namespace

ShardedTensor model_tensor(const Parameter& parameter, const RankMap& from, const RankMap& to,
                           DType dtype) {
  ShardedTensor tensor = sharded(parameter, dtype);
  tensor.source = holdings_of(parameter, from, stored_box);
  tensor.destination = holdings_of(parameter, to, compute_box);
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
    tensor.source = holdings_of(parameter, from, stored_box);
    for (const int rank : to.ranks) tensor.destination.push_back({rank, whole(parameter.shape)});
  }
  return tensors;
}

}  // namespace tessera
