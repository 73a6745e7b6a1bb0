#include "planner/search/exact.h"

#include <algorithm>

#include "planner/search/placement_search.h"
#include "planner/search/view_fronts.h"

namespace tessera {

SearchResult search_exactly(const SearchProblem& problem) {
  FrontStore store;
  return search_exactly(problem, store);
}

SearchResult search_exactly(const SearchProblem& problem, FrontStore& store) {
  ViewFronts fronts(problem, *store.state_);
  SearchResult result;
  for (const Placement& placement : problem.placements) {
    const std::vector<int> in_step{0};
    for (const int lag : rollout_apart(placement) ? problem.policy_lags : in_step) {
      Solution best = search_placement(problem, placement, lag, fronts, result.pruned);
      if (best.found()) result.best.push_back(std::move(best));
    }
  }
  result.evaluated = fronts.evaluated();
  const auto value = [&](const Solution& solution) {
    return value_of(problem.objective, solution);
  };
  std::stable_sort(result.best.begin(), result.best.end(),
                   [&](const Solution& a, const Solution& b) { return value(a) < value(b); });
  return result;
}

std::vector<Solution> pareto_front(const SearchProblem& problem, const std::vector<int>& counts) {
  FrontStore store;
  std::vector<Solution> front;
  SearchProblem limited = problem;
  limited.objective = Objective::step_time;
  for (const int gpus : counts) {
    limited.gpus = gpus;
    SearchResult result = search_exactly(limited, store);
    if (result.best.empty()) continue;
    Solution& best = result.best.front();
    if (front.empty() || best.step_s < front.back().step_s) front.push_back(std::move(best));
  }
  return front;
}

}  // namespace tessera
