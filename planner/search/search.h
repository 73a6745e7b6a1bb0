// From a request to a search problem, and from a solution to a plan.
//
// Pure functions; one thread for each CostEvaluator.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "planner/engines/capabilities.h"
#include "planner/plan/planned_reshard.h"
#include "planner/pricing/evaluate.h"
#include "planner/request/candidate.h"
#include "planner/request/request.h"
#include "planner/request/solution.h"
#include "planner/search/exact.h"

namespace tessera {

struct Plan;

/// The search problem of a request. `costs` must outlive it. `replanned`: prices are to serve other
/// settings as well, so fixed degrees do not limit the candidates but SearchProblem::layouts.
SearchProblem search_problem(const PlanRequest& request, const Capabilities& capabilities,
                             CostEvaluator& costs,
                             const std::optional<Evaluator>& evaluator = std::nullopt,
                             bool replanned = false);

/// Placements that `request.fixed.placement` allows: all, or the one that is named ("colocated",
/// "standalone", "actor+reference | critic"). Empty and a Problem when it names none. A rollout has
/// GPUs of its own where the engine generates in step with it, or the request allows one step off.
std::vector<Placement> allowed_placements(const PlanRequest& request, Problems& problems);

/// A reshard with the rollout's rank map that it is for.
struct MappedReshard {
  RankOrder order = RankOrder::contiguous;
  std::vector<int> ranks;
  PlannedReshard pair;
};

/// Exact reshards that were worked out, by what they depend on: the layouts and first ranks of
/// actor and rollout.
using KnownReshards = std::map<std::tuple<Candidate, Candidate, int, int>, MappedReshard>;

/// The whole plan of a solution: ranks, memory of every phase, exact reshard, environment,
/// prediction. `known` serves and takes up the reshard.
Plan compose_plan(const PlanRequest& request, CostEvaluator& costs, const Solution& solution,
                  KnownReshards* known = nullptr);

}  // namespace tessera
