// A hand-written plan under the planner's cost models.
#include <algorithm>

#include "planner/interop/import.h"
#include "planner/plan/one_step_off.h"
#include "planner/search/fixed.h"
#include "planner/search/role_operations.h"
#include "planner/search/search.h"
#include "planner/search/space.h"
#include "planner/search/why_not.h"

namespace tessera {

Pricing price(Plan& plan, const Calibration& calibration) {
  Pricing pricing;
  PlanRequest request = request_of(plan, calibration);
  request.traits = traits_of(plan.engine);
  const CostEvaluator costs(request);
  Solution solution;
  solution.placement = placement_of(plan);
  for (const std::vector<Role>& block : solution.placement) {
    const std::vector<int>& ranks = plan.find(block.front())->ranks;
    solution.sizes.push_back(static_cast<int>(ranks.size()));
    solution.first_rank.push_back(*std::min_element(ranks.begin(), ranks.end()));
  }
  std::vector<std::string> left_out;
  for (const RolePlan& role : plan.roles) {
    const Candidate candidate = candidate_of(plan, role);
    if (role.layout.stages != layout_of(candidate, plan.model_of(role.role).layers).stages) {
      left_out.push_back("the " + std::string(name_of(role.role)) + "'s uneven stages");
    }
    solution.choice.emplace(role.role, candidate);
  }
  solution.policy_lag = is_one_step_off(plan.schedule) ? 1 : 0;
  const FixedIteration fixed =
      price_iteration(costs, solution.choice, solution.placement, solution.policy_lag);
  pricing.fits = fixed.fits();
  if (!pricing.fits) pricing.notes.push_back("does not fit: " + fixed.why + ".");
  solution.seconds = fixed.seconds;
  solution.step_s = fixed.step_s;
  const bool priced_all = std::all_of(fixed.roles.begin(), fixed.roles.end(),
                                      [](const auto& role) { return !role.second.memory.empty(); });
  if (!priced_all) return pricing;  // an impossible layout has no time

  // Its memory and prediction; the layouts stay the file's.
  const Plan priced = compose_plan(request, costs, solution);
  for (RolePlan& role : plan.roles) role.memory = priced.find(role.role)->memory;
  for (PlannedReshard& pair : plan.reshard) {
    const ReshardPlan exact = reshard_plan_of(plan, pair);
    pair.digest = digest_text(exact.digest);
    pair.bytes_received = exact.bytes_received.value;
    pair.lower_bound_bytes = exact.lower_bound.value;
    pair.total_received_bytes = exact.total_received.value;
  }
  plan.prediction = priced.prediction;
  plan.provenance.calibration = calibration.name;
  if (!left_out.empty()) {
    std::string all;
    for (const std::string& one : left_out) all += (all.empty() ? "" : ", ") + one;
    pricing.notes.insert(pricing.notes.begin(), "the prediction leaves out " + all + ".");
  }
  return pricing;
}

}  // namespace tessera
