// Tessera's own executor. Sources: executor/train (Trainer) and executor/model (CachedDecoder).
#include "planner/engines/rows.h"

namespace tessera {

Engine tessera_engine() {
  Engine engine;
  engine.name = kOwnEngine;
  Capabilities& can = engine.capabilities;
  can.roles = {kEveryRole.begin(), kEveryRole.end()};
  can.zero = {0, 1, 2, 3};
  can.recompute = {Recompute::none, Recompute::selective, Recompute::full};
  can.virtual_stages = can.fully_sharded = can.sequence_parallel = true;
  can.context_parallel = true;  // as a ring and as Ulysses
  can.offload = can.unmap = true;
  can.own_pool_lags = {0};
  can.params = kTrainableTypes;
  can.families = {ModelFamily::llama, ModelFamily::mistral, ModelFamily::qwen2, ModelFamily::qwen3};
  engine.traits.overlapped_shards = true;
  engine.traits.overlapped_gradients = true;
  engine.traits.overlapped_parameters = true;
  engine.traits.overlapped_tensor = true;
  engine.traits.copied_shards = true;
  engine.traits.reduces_every_batch = true;
  engine.traits.host_optimizer = true;
  engine.traits.refills_alone = true;
  engine.prompts = PromptDealing::equal_shares;
  engine.weights.exact_ranges = true;
  engine.weights.any_rank_list = true;
  engine.weights.shares_memory = true;
  return engine;
}

}  // namespace tessera
