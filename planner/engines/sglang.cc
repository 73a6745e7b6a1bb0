// SGLang 0.5.12: serves the rollout.
#include "planner/engines/rows.h"

namespace tessera {

Engine sglang_engine() {
  Engine engine = inference_server("sglang", "0.5.12");
  engine.traits.decode.block_tokens = 1;  // page_size
  return engine;
}

}  // namespace tessera
