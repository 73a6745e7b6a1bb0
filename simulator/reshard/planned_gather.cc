#include <optional>

#include "planner/engines/engine.h"
#include "planner/plan/plan.h"
#include "simulator/reshard/methods.h"

namespace tessera {

std::optional<PlannedGather> planned_gather(const Plan& plan) {
  const std::optional<WholeGather>& gather = engine_named(plan.engine).weights.gather;
  if (!gather || plan.reshard.empty()) return std::nullopt;
  return PlannedGather{gather->master_weights, plan.reshard.front().bucket_bytes,
                       traits_of(plan.engine).handover};
}

}  // namespace tessera
