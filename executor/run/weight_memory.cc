#include "executor/run/weight_memory.h"

#include "planner/plan/one_step_off.h"

namespace tessera {
namespace {

bool trains_on_master_weights(const RolePlan& role) {
  const ParallelLayout& layout = role.layout;
  const bool cut = layout.zero >= 1 && layout.dp() * layout.cp > 1;
  return role.dtypes.param == DType::fp32 && !cut && !role.offload.optimizer;
}

}  // namespace

bool shares_memory(const Plan& plan, const ReshardConfig& config) {
  if (plan.reshard.empty()) return false;
  const PlannedReshard& pair = plan.reshard.front();
  const RolePlan *actor = plan.find(pair.from), *rollout = plan.find(pair.to);
  if (actor == nullptr || rollout == nullptr) return false;
  const bool as_they_are = pair.mode == ReshardMode::minimal && !config.wire &&
                           actor->dtypes.param == rollout->dtypes.param;
  const bool stay = !config.unmap && !actor->offload.parameters;
  return as_they_are && stay && actor->layout.dp_shard == 1 && !is_one_step_off(plan.schedule) &&
         !trains_on_master_weights(*actor);
}

}  // namespace tessera
