// What the fixed order costs a rollout: passes of the same model over the same cache, in either
// order.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>

#include "executor/rollout/paged_model.h"

namespace tessera {

/// Seconds of a pass in which every slot decodes one token of a text half as long as the longest.
struct OrderCost {
  std::int64_t sequences = 0;
  double fixed_s = 0, fastest_s = 0;
};

/// The mean of a few passes, after those that choose kernels and capture graphs. Overwrites the
/// cache, which must be finite. Collective over the tensor-parallel group, on which times differ.
OrderCost measure_order_cost(const Weights& weights, const ParallelGroups& groups,
                             const CacheShape& shape, const torch::Tensor& memory);

}  // namespace tessera
