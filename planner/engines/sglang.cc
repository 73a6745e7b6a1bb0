// SGLang 0.5.12: serves the rollout.
#include "planner/engines/rows.h"

namespace tessera {

Engine sglang_engine() { return inference_server("sglang", "0.5.12"); }

}  // namespace tessera
