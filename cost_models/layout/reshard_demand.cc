#include "cost_models/layout/reshard_demand.h"

#include <algorithm>
#include <map>
#include <utility>

#include "cost_models/layout/model_tensors.h"
#include "cost_models/layout/overlay.h"
#include "cost_models/layout/sharding.h"

namespace tessera {

std::vector<ReshardDemand> reshard_demands(const ParameterTable& table, const RankMap& from,
                                           const RankMap& to, DType dtype) {
  const AlikeParameters alike = alike_parameters(table, from.layout, to.layout);
  ParameterTable kinds{.model = table.model, .rows = {}};
  for (const int row : alike.first) kinds.rows.push_back(table.rows[static_cast<size_t>(row)]);
  std::map<std::pair<int, std::vector<int>>, Bytes> bytes;
  const std::vector<ShardedTensor> tensors = model_tensors(kinds, from, to, dtype);
  for (size_t kind = 0; kind < tensors.size(); ++kind) {
    const Wanted wanted = wanted_boxes(tensors[kind].destination);
    const Overlay overlay =
        overlay_of(held_boxes(tensors[kind].source), wanted, tensors[kind].name);
    const Bytes each = tensors[kind].element_bytes * alike.count[kind];
    for (const Wanted::Entry& entry : wanted.entries) {
      for (const Overlay::Cell& cell : overlay.regions[static_cast<size_t>(entry.region)]) {
        const std::vector<int>& holders = overlay.holders[static_cast<size_t>(cell.holders)];
        if (std::binary_search(holders.begin(), holders.end(), entry.rank)) continue;
        bytes[{entry.rank, holders}] += volume(cell.box) * each;
      }
    }
  }
  std::vector<ReshardDemand> demands;
  for (const auto& [key, sum] : bytes) demands.push_back({key.first, key.second, sum});
  return demands;
}

}  // namespace tessera
