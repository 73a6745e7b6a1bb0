#include "planner/plan/served_memory.h"

#include <algorithm>
#include <cmath>

#include "planner/plan/plan.h"

namespace tessera {

double served_memory_share(const Plan& plan, const RolePlan& role, Phase phase, double unknown) {
  const auto found = role.memory.find(phase);
  const Bytes memory = plan.cluster.device.memory;
  if (found == role.memory.end() || memory <= 0) return unknown;
  MemoryUse use = found->second;
  use.reserve = use.reshard = {};
  const double share = use.total() / memory;
  return std::clamp(std::ceil(share * 100) / 100, 0.05, 0.95);
}

}  // namespace tessera
