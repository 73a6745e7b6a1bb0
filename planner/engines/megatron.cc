// Megatron-LM alone: it trains an actor or a critic, and has no loop and no rollout of its own.
#include "planner/engines/rows.h"

namespace tessera {

Engine megatron_engine() {
  Engine engine = megatron_core("megatron", "core 0.18");
  engine.capabilities.roles = {Role::actor, Role::critic};
  engine.capabilities.params = kTrainableTypes;
  return engine;
}

}  // namespace tessera
