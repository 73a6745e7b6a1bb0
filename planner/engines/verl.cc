// verl 0.9.1 with its FSDP trainer (workers/engine/fsdp). FSDP has no tensor or pipeline
// parallelism; `context` is Ulysses. Stage 2 is reshard_after_forward = false, stage 0 is
// fsdp_size = 1.
#include "planner/engines/rows.h"

namespace tessera {

Engine verl_engine() {
  Engine engine = library_engine("verl", "0.9.1");
  add_verl_loop(engine);
  Capabilities& can = engine.capabilities;
  can.zero = {0, 2, 3};
  can.recompute = {Recompute::none, Recompute::full};
  can.most_tp = can.most_pp = 1;
  can.context_parallel = can.fully_sharded = true;
  can.ulysses = true;
  can.reference_on_host = true;  // whatever its configuration says (transformer_impl.py)
  can.params = kTrainableTypes;
  engine.traits.scattered_hops = false;
  engine.traits.loss = LossKernel::in_place;
  engine.traits.context_shards = true;     // one mesh of all GPUs, Ulysses' groups inside
  engine.traits.master_parameters = true;  // model_dtype fp32, mixed precision
  engine.traits.fresh_gradients = true;
  engine.weights.gather->master_weights = true;  // FSDP's shards are these
  return engine;
}

}  // namespace tessera
