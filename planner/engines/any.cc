// No engine: the whole space that the cost models can price.
#include <limits>

#include "planner/engines/rows.h"

namespace tessera {

Engine any_engine() {
  Engine engine = library_engine(std::string(kAnyEngine), "");
  Capabilities& can = engine.capabilities;
  can.zero = {0, 1, 2, 3};
  can.recompute = {Recompute::none, Recompute::selective, Recompute::full};
  can.most_rollout_pp = std::numeric_limits<int>::max();
  can.context_parallel = can.expert_parallel = can.virtual_stages = true;
  can.fully_sharded = can.sequence_parallel = can.offload = can.unmap = true;
  can.served_experts = ServedExperts::any_degree;
  can.own_pool_lags = {0, 1};
  can.families = {kEveryFamily.begin(), kEveryFamily.end()};
  can.params = kTrainableTypes;
  return engine;
}

}  // namespace tessera
