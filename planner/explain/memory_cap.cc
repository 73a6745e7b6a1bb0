#include "planner/explain/memory_cap.h"

#include <algorithm>
#include <cmath>

namespace tessera {

void cap_memory(PlanRequest& request, Bytes limit) {
  const double usable = 1 - request.calibration.fragmentation.value;
  const Bytes memory{
      static_cast<std::int64_t>(std::ceil(static_cast<double>(limit.value) / usable))};
  ClusterSpec& cluster = request.cluster;
  cluster.device.memory = std::min(cluster.device.memory, memory);
  for (NodeGroup& group : cluster.groups) {
    group.device.memory = std::min(group.device.memory, memory);
  }
}

}  // namespace tessera
