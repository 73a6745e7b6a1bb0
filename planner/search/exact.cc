#include "planner/search/exact.h"

#include <algorithm>
#include <utility>

#include "cost_models/documents/stopped.h"
#include "planner/pricing/iteration.h"
#include "planner/request/objective.h"
#include "planner/search/placement_search.h"
#include "planner/search/view_fronts.h"

namespace tessera {

SearchResult search_exactly(const SearchProblem& problem) {
  FrontStore store;
  return search_exactly(problem, store);
}

namespace {

using Pass = PlacementSearch::Pass;

// Keeps what a pass finds.
void improve(PlacementSearch& search, Pass pass, Rivals& rivals, Solution& best,
             const std::stop_token& stop, std::int64_t& pruned) {
  end_if_stopped(stop);
  Solution next = search.run(rivals, pass, pruned);
  if (!next.found()) return;
  best = std::move(next);
  rivals.own = incumbent_of(best);
}

// The best of all placements with the rollout apart that the step waits for: GPUs of such a rollout
// are idle in every other phase, so that there are many plans of nearly the same step, of which
// hardly ever one is the best of all. Each has to beat those before it, few blocks first.
Solution best_apart(const SearchProblem& problem, const Incumbent& best_of_all, ViewFronts& fronts,
                    std::int64_t& pruned) {
  std::vector<PlacementSearch> searches;
  for (const Placement& placement : problem.placements) {
    if (rollout_apart(placement)) searches.emplace_back(problem, placement, 0, fronts);
  }
  const auto order = [](const PlacementSearch& search) {
    return std::pair(search.blocks(), search.bound());
  };
  std::stable_sort(searches.begin(), searches.end(),
                   [&](const auto& a, const auto& b) { return order(a) < order(b); });
  Solution best;
  Rivals rivals{.own = problem.better_than, .all = best_of_all, .slack = kApartSlack};
  for (PlacementSearch& search : searches) {
    const bool any = rivals.own.step_s < std::numeric_limits<double>::infinity();
    if (!any) improve(search, Pass::narrow, rivals, best, problem.stop, pruned);
    improve(search, Pass::whole, rivals, best, problem.stop, pruned);
  }
  return best;
}

Solution best_of(PlacementSearch search, const SearchProblem& problem, std::int64_t& pruned) {
  Solution best;
  Rivals rivals{.own = problem.better_than, .all = {}};
  for (const Pass pass : {Pass::narrow, Pass::whole}) {
    improve(search, pass, rivals, best, problem.stop, pruned);
  }
  return best;
}

}  // namespace

SearchResult search_exactly(const SearchProblem& problem, FrontStore& store) {
  ViewFronts fronts(problem, *store.state_);
  SearchResult result;
  const auto add = [&](Solution solution) {
    if (solution.found()) result.best.push_back(std::move(solution));
  };
  for (const Placement& placement : problem.placements) {
    for (const int lag : rollout_apart(placement) ? problem.policy_lags : std::vector<int>{0}) {
      if (lag == 0 && rollout_apart(placement)) continue;
      add(best_of(PlacementSearch(problem, placement, lag, fronts), problem, result.pruned));
    }
  }
  const auto value = [&](const Solution& solution) {
    return value_of(problem.objective, solution);
  };
  const auto by_value = [&](const Solution& a, const Solution& b) { return value(a) < value(b); };
  std::stable_sort(result.best.begin(), result.best.end(), by_value);
  if (std::count(problem.policy_lags.begin(), problem.policy_lags.end(), 0) > 0) {
    const Incumbent best = result.best.empty() ? Incumbent{} : incumbent_of(result.best.front());
    add(best_apart(problem, best, fronts, result.pruned));
    std::stable_sort(result.best.begin(), result.best.end(), by_value);
  }
  result.evaluated = fronts.evaluated();
  return result;
}

std::optional<Solution> any_plan(SearchProblem problem, FrontStore& store) {
  const std::vector<Placement> placements = std::move(problem.placements);
  for (const Placement& placement : placements) {
    problem.placements = {placement};
    SearchResult result = search_exactly(problem, store);
    if (!result.best.empty()) return std::move(result.best.front());
  }
  return std::nullopt;
}

std::vector<Solution> pareto_front(
    const SearchProblem& problem, const std::vector<int>& counts,
    const std::function<SearchResult(const SearchProblem&)>& best_of) {
  std::vector<Solution> front;
  SearchProblem limited = problem;
  limited.objective = Objective::step_time;
  for (const int gpus : counts) {
    limited.gpus = gpus;
    if (!front.empty()) limited.better_than = incumbent_of(front.back());
    SearchResult result = best_of(limited);
    if (!result.best.empty()) front.push_back(std::move(result.best.front()));
  }
  return front;
}

}  // namespace tessera
