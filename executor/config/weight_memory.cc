#include "executor/config/weight_memory.h"

#include "planner/plan/plan.h"
#include "planner/plan/shared_weights.h"

namespace tessera {

bool shares_memory(const Plan& plan, const ReshardConfig& config) {
  return !config.wire && !config.unmap && shares_weights(plan);
}

}  // namespace tessera
