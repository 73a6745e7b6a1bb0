#include "planner/space/pool_share.h"

#include <numeric>

namespace tessera {

PoolShare pool_share(const PlanRequest& request, PromptDealing prompts, const Candidate& rollout) {
  const Workload& workload = request.workload;
  const std::int64_t most = most_sequences(workload, prompts, rollout.dp);
  if (most * rollout.dp == workload.sequences()) return PoolShare::even;
  const auto fixed = [&](Field field) {
    return request.fixed.find(Role::rollout, field).has_value();
  };
  if (fixed(Field::gpus) || fixed(Field::dp) || rollout.ep > 1) return PoolShare::uneven;
  // A smaller pool may lie on other types.
  if (!request.cluster.groups.empty()) return PoolShare::uneven;
  const int replica = rollout.tp * rollout.pp;
  const int fewer =
      rollout.dp - std::lcm(replica, static_cast<int>(request.cluster.gpus_per_node)) / replica;
  const bool spare = fewer > 0 && most_sequences(workload, prompts, fewer) == most;
  return spare ? PoolShare::spare : PoolShare::uneven;
}

}  // namespace tessera
