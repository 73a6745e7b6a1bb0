#include "planner/search/refined_limits.h"

#include <algorithm>
#include <utility>

#include "planner/plan/phase_seconds.h"
#include "planner/pricing/fixed.h"
#include "planner/pricing/iteration.h"
#include "planner/request/candidate.h"
#include "planner/request/request.h"
#include "planner/request/solution.h"

namespace tessera {
namespace {

// Of a rank of the role's block, with the role's candidate as it is in the solution.
Bytes bytes_of_block(const SearchProblem& problem, const Solution& solution, Role role) {
  for (const std::vector<Role>& block : solution.placement) {
    if (std::find(block.begin(), block.end(), role) == block.end()) continue;
    std::vector<RoleCost> together;
    for (const Role each : block) {
      together.push_back(problem.evaluator.role(solution.choice.at(each)));
    }
    return bytes_together(together);
  }
  return {};
}

Bytes limit_of(const SearchProblem& problem, const Candidate& candidate) {
  return problem.views.empty()
             ? problem.memory_limit
             : problem.views[static_cast<std::size_t>(candidate.view)].memory_limit;
}

Solution with_candidate(const SearchProblem& problem, Solution solution,
                        const Candidate& candidate) {
  Candidate& own = solution.choice.at(candidate.role);
  const PhaseSeconds before = problem.evaluator.role(own).seconds;
  const PhaseSeconds after = problem.evaluator.role(candidate).seconds;
  for (const Phase phase : kEveryPhase) {
    if (before[phase] != after[phase]) solution.seconds[phase] += after[phase] - before[phase];
  }
  own = candidate;
  const auto schedule = schedule_of(problem.schedule, solution.placement, solution.policy_lag);
  solution.step_s =
      Iteration(schedule, blocks_of(schedule, solution.placement)).step_seconds(solution.seconds);
  return solution;
}

// The best of the limits between `limit` and twice as much, set by `set` in the role's candidate.
template <class Set>
void refine(const SearchProblem& problem, std::int64_t limit, std::int64_t longest, Role role,
            const Set& set, Solution& best) {
  const std::int64_t cp = best.choice.at(role).cp;
  for (std::int64_t count = limit / longest + 1; count * longest < 2 * limit; ++count) {
    Candidate candidate = best.choice.at(role);
    set(candidate, (count * longest + cp - 1) / cp * cp);
    Solution next = with_candidate(problem, best, candidate);
    if (next.step_s >= best.step_s ||
        bytes_of_block(problem, next, role) > limit_of(problem, candidate)) {
      continue;
    }
    best = std::move(next);
  }
}

}  // namespace

Solution with_refined_limits(const SearchProblem& problem, const PlanRequest& request,
                             const Solution& solution) {
  const std::int64_t longest = longest_sequence(request.workload);
  Solution best = solution;
  for (const auto& [role, candidate] : solution.choice) {
    const bool fixed = request.fixed.find(role, Field::tokens).has_value() ||
                       request.fixed.find(role, Field::update_tokens).has_value();
    if (role == Role::rollout || fixed || candidate.tokens < longest) continue;
    if (candidate.update_tokens == 0) {  // one limit for all of the role's calls
      refine(
          problem, candidate.tokens, longest, role,
          [](Candidate& own, std::int64_t tokens) { own.tokens = tokens; }, best);
      continue;
    }
    refine(
        problem, candidate.tokens, longest, role,
        [](Candidate& own, std::int64_t tokens) { own.tokens = tokens; }, best);
    refine(
        problem, candidate.update_tokens, longest, role,
        [](Candidate& own, std::int64_t tokens) { own.update_tokens = tokens; }, best);
  }
  return best;
}

}  // namespace tessera
