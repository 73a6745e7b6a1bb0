#include <optional>

#include "planner/engines/engine.h"
#include "planner/plan/plan.h"
#include "planner/pricing/role/full_gather.h"
#include "simulator/reshard/methods.h"

namespace tessera {

std::optional<PlannedGather> planned_gather(const Plan& plan) {
  const std::optional<WholeGather>& gather = engine_named(plan.engine).weights.gather;
  if (!gather || plan.reshard.empty()) return std::nullopt;
  return PlannedGather{gather->master_weights, traits_of(plan.engine).shards.over_context,
                       plan.reshard.front().bucket_bytes, traits_of(plan.engine).handover};
}

RankMap kept_by_trainer(const ReshardQuestion& question) {
  const bool over_context = question.gather && question.gather->over_context;
  return over_context ? sharded_over_context(question.from) : question.from;
}

}  // namespace tessera
