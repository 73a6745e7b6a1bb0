// The byte-exact reshard that a plan prescribes for one pair of its roles.
#include "cost_models/layout/parameter_table.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

ReshardPlan planned(const Plan& plan, const PlannedReshard& pair, bool listed) {
  const RolePlan* const source = plan.find(pair.from);
  TESSERA_CHECK(source != nullptr && plan.find(pair.to) != nullptr);
  const ParameterTable table = parameter_table(plan.model_of(pair.from));
  const RankMap from = rank_map_of(plan, pair.from), to = rank_map_of(plan, pair.to);
  const DType wire = source->dtypes.wire;
  ReshardOptions options;
  const auto per_node = plan.cluster.gpus_per_node;
  options.node_of = [per_node](int rank) { return static_cast<int>(rank / per_node); };
  if (pair.mode == ReshardMode::full) {
    return plan_reshard(full_gather_tensors(table, from, to, wire), options);
  }
  if (!listed) return reshard_totals(table, from, to, wire, options);
  return plan_reshard(model_tensors(table, from, to, wire), options);
}

}  // namespace

ReshardPlan reshard_plan_of(const Plan& plan, const PlannedReshard& pair) {
  return planned(plan, pair, true);
}

ReshardPlan reshard_totals_of(const Plan& plan, const PlannedReshard& pair) {
  return planned(plan, pair, false);
}

}  // namespace tessera
