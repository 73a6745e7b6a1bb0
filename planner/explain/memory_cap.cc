#include "planner/explain/memory_cap.h"

#include <algorithm>

#include "planner/pricing/memory_limit.h"

namespace tessera {
namespace {

/// The least memory of which `limit` is usable, to a part in a million: usable bytes grow with it.
Bytes memory_with(PlanRequest request, Bytes limit) {
  const auto usable_of = [&request](Bytes memory) {
    request.cluster.device.memory = memory;
    return usable_memory(request);
  };
  Bytes low = limit, high = 2 * limit;
  constexpr Bytes kMost{std::int64_t{1} << 60};
  while (high < kMost && usable_of(high) < limit) high *= 2;
  while (high - low > std::max(Bytes{1}, limit / 1'000'000)) {
    const Bytes middle = low + (high - low) / 2;
    (usable_of(middle) < limit ? low : high) = middle;
  }
  return high;
}

}  // namespace

void cap_memory(PlanRequest& request, Bytes limit) {
  const Bytes memory = memory_with(request, limit);
  ClusterSpec& cluster = request.cluster;
  cluster.device.memory = std::min(cluster.device.memory, memory);
  for (NodeGroup& group : cluster.groups) {
    group.device.memory = std::min(group.device.memory, memory);
  }
}

}  // namespace tessera
