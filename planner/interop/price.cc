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
namespace {

// Sequences that a replica of the rollout decodes at once: an inference server takes no more than
// there are, nor than its cache holds beside what the other roles of its ranks keep, and queues the
// rest. What one sequence does not fit is left as it is, to be reported.
std::int64_t admitted(const CostEvaluator& costs, const Solution& solution, const Workload& work) {
  Candidate rollout = solution.choice.at(Role::rollout);
  std::int64_t others = 0;
  for (const std::vector<Role>& block : solution.placement) {
    if (std::find(block.begin(), block.end(), Role::rollout) == block.end()) continue;
    for (const Role role : block) {
      if (role != Role::rollout) others += costs.cost(solution.choice.at(role)).resident;
    }
  }
  const std::int64_t limit = memory_limit(costs.request()) - others;
  const auto fits = [&](std::int64_t sequences) {
    rollout.max_sequences = sequences;
    return costs.memory(rollout, Phase::gen).total() <= limit;
  };
  const std::int64_t asked = rollout.max_sequences;
  const std::int64_t present = (work.sequences() + rollout.dp - 1) / rollout.dp;
  std::int64_t most = std::min(asked, std::max<std::int64_t>(1, present));
  if (fits(most)) return most;
  if (!fits(1)) return asked;
  std::int64_t least = 1;  // fits; `most` does not
  while (most - least > 1) {
    const std::int64_t middle = least + (most - least) / 2;
    (fits(middle) ? least : most) = middle;
  }
  return least;
}

// Every role's layout is possible at all.
bool all_possible(const CostEvaluator& costs, const Solution& solution) {
  return std::all_of(solution.choice.begin(), solution.choice.end(), [&](const auto& entry) {
    return impossible(costs.request(), entry.second).empty();
  });
}

// The slots of a serving engine as far as they are used.
void limit_slots(Plan& plan, const CostEvaluator& costs, Solution& solution, Pricing& pricing) {
  const auto rollout = std::find_if(plan.roles.begin(), plan.roles.end(), [](const RolePlan& role) {
    return role.role == Role::rollout;
  });
  const bool serves = plan.engine != "tessera" && rollout != plan.roles.end();
  if (!serves || !all_possible(costs, solution)) return;
  const std::int64_t asked = rollout->batching.max_sequences;
  const std::int64_t used = admitted(costs, solution, plan.workload);
  if (used == asked) return;
  rollout->batching.max_sequences = solution.choice.at(Role::rollout).max_sequences = used;
  pricing.notes.push_back("of " + std::to_string(asked) + " sequences that a rollout replica may " +
                          "decode at once " + std::to_string(used) +
                          " are counted: so many there are, or fit as the longest.");
}

}  // namespace

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
  limit_slots(plan, costs, solution, pricing);
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
