// No engine: the whole space that the cost models can price.
//
// A request for it is answered by the best of this space and of every engine's own: engines differ
// in how they deal ranks and sequences, in what overlaps and in what their memory is counted by, so
// that no one space holds them all. A plan of this space is one that no engine may run.
#include <limits>

#include "planner/engines/rows.h"

namespace tessera {

Engine any_engine() {
  Engine engine = library_engine(std::string(kAnyEngine), "");
  Capabilities& can = engine.capabilities;
  can.roles = {kEveryRole.begin(), kEveryRole.end()};
  can.training.zero = {0, 1, 2, 3};
  can.training.recompute = {Recompute::none, Recompute::selective, Recompute::full};
  can.serving.most_pp = std::numeric_limits<int>::max();
  can.training.context_parallel = can.training.expert_parallel = can.training.virtual_stages = true;
  can.training.fully_sharded = can.training.sequence_parallel = can.offload.trained =
      can.offload.rollout = true;
  can.serving.experts = ServedExperts::any_degree;
  can.pools.rollout_lags = {0, 1};
  can.families = {kEveryFamily.begin(), kEveryFamily.end()};
  can.params = kTrainableTypes;
  can.prediction_layers = true;
  return engine;
}

}  // namespace tessera
