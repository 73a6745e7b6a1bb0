// The search problem that a request poses.
#include <algorithm>

#include "planner/search/search.h"
#include "planner/search/space.h"

namespace tessera {
namespace {

std::string without_spaces(std::string text) {
  std::erase(text, ' ');
  return text;
}

}  // namespace

std::vector<Placement> allowed_placements(const PlanRequest& request, Problems& problems) {
  std::vector<Placement> all =
      all_placements(roles_of(request.workload), may_disaggregate(request.engine));
  const std::string wanted = without_spaces(request.fixed.placement);
  if (wanted.empty()) return all;
  if (wanted == "standalone") return {all.back()};
  std::vector<std::string> names;
  for (const Placement& placement : all) {
    names.push_back(without_spaces(describe(placement)));
    if (names.back() == wanted) return {placement};
  }
  std::string known;
  for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
  problems.push_back({"--fix", "placement", wanted, known, did_you_mean(wanted, names)});
  return {};
}

SearchProblem search_problem(const PlanRequest& request, const Capabilities& capabilities,
                             const CostEvaluator& costs,
                             const std::optional<Evaluator>& evaluator) {
  Problems none;
  SearchProblem problem;
  problem.cluster = request.cluster;
  problem.roles = roles_of(request.workload);
  problem.schedule = default_schedule(request.workload);
  problem.fixed_seconds = compute_call_seconds(request);
  problem.memory_limit = memory_limit(request);
  problem.placements = allowed_placements(request, none);
  if (capabilities.colocated) {
    // One pool of GPUs for all but the reward model.
    std::erase_if(problem.placements, [](const Placement& placement) {
      return std::count_if(placement.begin(), placement.end(), [](const std::vector<Role>& block) {
               return block != std::vector{Role::reward};
             }) > 1;
    });
  }
  problem.candidates = [request, capabilities](Role role, int gpus) {
    return enumerate_candidates(request, capabilities, role, gpus);
  };
  for (const Role role : problem.roles) {
    FixedSettings own;
    for (const auto& [key, value] : request.fixed.values) {
      if (key.first == role) own.values[key] = value;
    }
    for (const std::string& word : words_of(own)) problem.settings[role] += word + " ";
  }
  problem.objective = request.objective;
  if (may_disaggregate(request.engine)) problem.policy_lags = {0, 1};
  problem.evaluator = evaluator.value_or(costs.evaluator());
  return problem;
}

}  // namespace tessera
