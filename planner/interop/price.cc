#include "planner/interop/price.h"

#include <algorithm>

#include "planner/engines/engine.h"
#include "planner/plan/amounts.h"
#include "planner/plan/plan.h"
#include "planner/pricing/fixed.h"
#include "planner/pricing/iteration.h"
#include "planner/pricing/memory_limit.h"
#include "planner/pricing/plan_pricing.h"
#include "planner/pricing/role/full_gather.h"
#include "planner/request/candidate.h"
#include "planner/request/plan_constants.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"
#include "planner/request/solution.h"
#include "planner/search/search.h"

namespace tessera {
namespace {

// Sequences that a replica of the rollout decodes at once: an inference server takes no more than
// there are, and what live in its cache beside what the other roles of its ranks keep and within
// its share of the memory; the rest waits. What one sequence does not fit is left as it is, to be
// reported; of a share alone, `tight` says it.
std::int64_t admitted(CostEvaluator& costs, const Solution& solution, const Workload& work,
                      double share, bool& tight) {
  Candidate rollout = solution.choice.at(Role::rollout);
  Bytes others;
  for (const std::vector<Role>& block : solution.placement) {
    if (std::find(block.begin(), block.end(), Role::rollout) == block.end()) continue;
    for (const Role role : block) {
      if (role != Role::rollout) others += costs.cost(solution.choice.at(role)).resident;
    }
  }
  const PlanRequest& seen = costs.request(rollout.view);
  const Bytes limit = memory_limit(seen) - others;
  const auto own =
      static_cast<std::int64_t>(share * static_cast<double>(seen.cluster.device.memory.value));
  const auto fits = [&](std::int64_t sequences) {
    rollout.max_sequences = sequences;
    const std::int64_t needed = costs.memory(rollout, Phase::gen).total();
    return needed <= limit && (own == 0 || needed <= own);
  };
  const std::int64_t asked = rollout.max_sequences;
  const std::int64_t present = most_sequences(work, PromptDealing::requests, rollout.dp);
  std::int64_t most = std::min(asked, std::max<std::int64_t>(1, present));
  if (fits(most)) return most;
  if (!fits(1)) {
    const bool alone = solution.choice.size() == 1;  // else other roles' figures are worth having
    tight = alone || costs.memory(rollout, Phase::gen).total() <= limit;
    return tight ? 1 : asked;
  }
  std::int64_t least = 1;  // fits; `most` does not
  while (most - least > 1) {
    const std::int64_t middle = least + (most - least) / 2;
    (fits(middle) ? least : most) = middle;
  }
  return least;
}

// Every role's layout is possible at all.
bool all_possible(CostEvaluator& costs, const Solution& solution) {
  return std::all_of(solution.choice.begin(), solution.choice.end(), [&](const auto& entry) {
    return impossible(costs.request(), entry.second).empty();
  });
}

// The slots of a serving engine as far as they are used.
void limit_slots(Plan& plan, CostEvaluator& costs, Solution& solution, double share,
                 Pricing& pricing) {
  const auto rollout = std::find_if(plan.roles.begin(), plan.roles.end(), [](const RolePlan& role) {
    return role.role == Role::rollout;
  });
  const bool serves =
      engine_named(plan.engine).prompts == PromptDealing::requests && rollout != plan.roles.end();
  if (!serves || !all_possible(costs, solution)) return;
  const std::int64_t asked = rollout->batching.max_sequences;
  bool tight = false;
  const std::int64_t used = admitted(costs, solution, plan.workload, share, tight);
  rollout->batching.max_sequences = solution.choice.at(Role::rollout).max_sequences = used;
  if (tight) {
    const Candidate& one = solution.choice.at(Role::rollout);
    const Bytes memory = costs.request(one.view).cluster.device.memory;
    const std::string sentence =
        "one sequence of " + std::to_string(longest_sequence(plan.workload)) + " tokens needs " +
        in_gib(costs.memory(one, Phase::gen).total()) + " with weights and workspace; the " +
        "server's share of a GPU is " +
        in_gib(Bytes{static_cast<std::int64_t>((share * memory).value)});
    const bool alone = solution.choice.size() == 1;
    if (alone) pricing.fits = false;
    pricing.notes.push_back((alone ? "does not fit: " : "tight: ") + sentence + ".");
    return;
  }
  if (used == asked) return;
  pricing.notes.push_back("of " + std::to_string(asked) + " sequences that a rollout replica may " +
                          "decode at once " + std::to_string(used) +
                          " are counted: so many there are, or live in its cache.");
}

// Generation is priced by all layers of a replica together.
bool unequal_rollout(const Plan& plan, const Solution& solution) {
  const RolePlan* rollout = plan.find(Role::rollout);
  if (rollout == nullptr) return false;
  const Candidate& candidate = solution.choice.at(Role::rollout);
  return rollout->layout.stages != layout_of(candidate, plan.model_of(Role::rollout).layers).stages;
}

// What the plan's own layouts move; `priced` is the plan as the search would compose it.
void set_reshards(Plan& plan, const Plan& priced, CostEvaluator& costs, const Solution& solution) {
  for (PlannedReshard& pair : plan.reshard) {
    const bool gathered = !costs.request().traits.adapters.minimal;
    if (plan.find(pair.to)->lora.moves_adapters() && gathered) {
      pair.bytes_received = pair.lower_bound_bytes =
          costs.reshard_bytes(solution.choice.at(Role::actor), solution.choice.at(Role::rollout));
      pair.total_received_bytes =
          pair.bytes_received * static_cast<std::int64_t>(plan.find(pair.to)->ranks.size());
      continue;
    }
    if (gathers_whole(plan.engine) && pair.mode == ReshardMode::full) {
      const PlannedReshard& same = priced.reshard.front();
      pair.lower_bound_bytes = same.lower_bound_bytes;
      set_gathered(plan,
                   rollout_apart(solution.placement)
                       ? GatheredBytes{same.bytes_received, same.total_received_bytes}
                       : gathered_bytes(plan, pair),
                   costs.memory(solution.choice.at(pair.to), Phase::gen).weights, pair);
      continue;
    }
    set_exact(plan, pair);
  }
}

}  // namespace

Pricing price(Plan& plan, const Calibration& calibration, double memory_share) {
  Pricing pricing;
  const PlanRequest request = priced_request_of(plan, calibration);
  CostEvaluator costs = evaluator_of(plan, calibration);
  Solution solution = solution_of(plan);
  limit_slots(plan, costs, solution, memory_share, pricing);
  const RolePlan& first = plan.roles.front();
  if (const std::int64_t batch = first.batching.max_sequences * first.layout.dp;
      plan.roles.size() == 1 && first.role == Role::rollout &&
      batch != plan.workload.prompts_per_step) {  // a server's step is what it decodes at once
    plan.workload.prompts_per_step = batch;
    Pricing again = price(plan, calibration, memory_share);
    for (const std::string& note : pricing.notes) {
      const bool said =
          std::find(again.notes.begin(), again.notes.end(), note) != again.notes.end();
      if (!said) again.notes.insert(again.notes.begin(), note);
    }
    return again;
  }
  const FixedIteration fixed =
      price_iteration(costs, solution.choice, solution.placement, solution.policy_lag);
  pricing.fits = pricing.fits && fixed.fits();
  if (!fixed.fits()) {
    const bool possible = all_possible(costs, solution);
    pricing.notes.push_back((possible ? "does not fit: " : "is not possible: ") + fixed.why + ".");
  }
  solution.seconds = fixed.seconds;
  solution.step_s = fixed.step_s;
  const bool priced_all = std::all_of(fixed.roles.begin(), fixed.roles.end(),
                                      [](const auto& role) { return !role.second.memory.empty(); });
  if (!priced_all) return pricing;  // an impossible layout has no time

  // Its memory and prediction; the layouts stay the file's.
  const Plan priced = compose_plan(request, costs, solution);
  for (RolePlan& role : plan.roles) role.memory = priced.find(role.role)->memory;
  set_reshards(plan, priced, costs, solution);
  plan.prediction = priced.prediction;
  if (plan.environment.empty())
    plan.environment = priced.environment;  // other tools' files say none
  state_constants(plan, calibration);
  if (unequal_rollout(plan, solution)) {
    pricing.notes.push_back("the rollout's stages count as equal ones in its times.");
  }
  return pricing;
}

}  // namespace tessera
