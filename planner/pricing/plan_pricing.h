// The prices of a plan that exists: every place that asks what a plan costs makes its evaluator
// here.
//
// Pure functions. The evaluator prices the plan's own engine choices and element types, and its
// layouts where their ranks lie; candidates of other degrees are priced as in the search.
#pragma once

#include "cost_models/layout/rank_map.h"
#include "planner/pricing/evaluate.h"
#include "planner/pricing/role/groups.h"

namespace tessera {

struct Plan;
struct RolePlan;

/// Prices the plan under constants that must be of its cluster.
CostEvaluator evaluator_of(const Plan& plan, const Calibration& calibration);

/// How the plan deals its roles' ranks and cuts their stages, as far as that is not the way that
/// candidates are priced in. `request`: priced_request_of the plan.
Deal deal_of(const Plan& plan, const PlanRequest& request);

/// Where the groups of a role lie whose ranks are in this order: of each kind the one on most
/// nodes.
CandidateGroups groups_of(const Plan& plan, const RolePlan& role, const RankMap& map);

/// What of it differs from the order that candidates are priced in.
GroupNodes nodes_of(const Plan& plan, const RolePlan& role, const PlanRequest& request);

}  // namespace tessera
