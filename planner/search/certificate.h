// The certificate of a plan: what it was compared with, and by how much it is better.
//
// Functions over a solved search; the runner-ups of the winner's own placement are searched with
// the prices that `store` keeps.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/pricing/evaluate.h"
#include "planner/request/request.h"
#include "planner/search/exact.h"
#include "planner/search/slots.h"

namespace tessera {

struct Certificate;
struct Plan;
struct RunnerUp;
struct SaferPlan;

/// A plan that the winner was compared with, and what it is beside its placement.
struct Rival {
  Solution solution;
  std::string note;  // ", another layout"
};

/// A plan that is not the winner, by what it is and by the settings that make it. `note`: as
/// Rival's.
RunnerUp runner_up_of(const ClusterSpec& cluster, const Solution& other,
                      const std::string& note = {});

/// The best plan of every other placement and the nearest layouts of the winner's own, best first.
/// None is better than the winner: one that is, which a search that left a gap allows, becomes the
/// winner of `solved`, under the same bound.
std::vector<Rival> rivals_of(const PlanRequest& request, const SearchProblem& problem,
                             SolvedSearch& solved, FrontStore& store);

/// Value, bound, gap, runner-ups and margin of `plan`, composed of the winner of `solved`. The
/// margin is the relative error e of the model at which value (1 + e) = runner-up (1 - e).
Certificate certificate_of(const PlanRequest& request, const SearchProblem& problem,
                           const SolvedSearch& solved, const std::vector<Rival>& rivals,
                           const Plan& plan);

/// The best plan at a tenth of the request's risk.
struct SaferSolution {
  double risk = 0;               // 0: less than can be asked for, not looked for
  double fits = 0;               // the probability that it fits
  std::optional<Solution> best;  // nullopt: none holds so well
};

/// The winner of `solved` where that holds so well. Else a search finds it, and becomes the winner
/// itself where it is no worse: of two plans as good the one that is likelier to survive is chosen.
SaferSolution find_safer(const PlanRequest& request, const SearchProblem& problem,
                         CostEvaluator& costs, SolvedSearch& solved, FrontStore& store);

/// As the plan states it.
SaferPlan safer_plan(const SearchProblem& problem, const SaferSolution& safer);

}  // namespace tessera
