// The byte-exact reshard that a plan prescribes for one pair of its roles.
#include "cost_models/layout/parameter_table.h"
#include "planner/plan/plan.h"

namespace tessera {

ReshardPlan reshard_plan_of(const Plan& plan, const PlannedReshard& pair) {
  const RolePlan* const source = plan.find(pair.from);
  TESSERA_CHECK(source != nullptr && plan.find(pair.to) != nullptr);
  const ParameterTable table = parameter_table(plan.model_of(pair.from));
  const RankMap from = rank_map_of(plan, pair.from), to = rank_map_of(plan, pair.to);
  const auto tensors = pair.mode == ReshardMode::full
                           ? full_gather_tensors(table, from, to, source->dtypes.wire)
                           : model_tensors(table, from, to, source->dtypes.wire);
  ReshardOptions options;
  const auto per_node = plan.cluster.gpus_per_node;
  options.node_of = [per_node](int rank) { return static_cast<int>(rank / per_node); };
  return plan_reshard(tensors, options);
}

}  // namespace tessera
