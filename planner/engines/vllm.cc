// vLLM 0.24: serves the rollout.
#include "planner/engines/rows.h"

namespace tessera {

Engine vllm_engine() { return inference_server("vllm", "0.24"); }

}  // namespace tessera
