// A hand-written plan under the planner's cost models.
#include <algorithm>
#include <cstdio>

#include "planner/interop/import.h"
#include "planner/search/fixed.h"
#include "planner/search/search.h"
#include "planner/search/space.h"
#include "planner/search/why_not.h"

namespace tessera {
namespace {

Candidate candidate_of(const RolePlan& role, bool ulysses) {
  const ParallelLayout& layout = role.layout;
  const Batching& batching = role.batching;
  Candidate candidate;
  candidate.role = role.role;
  candidate.gpus = static_cast<int>(role.ranks.size());
  candidate.tp = layout.tp;
  candidate.pp = layout.pp;
  candidate.dp = layout.dp();
  candidate.cp = layout.cp;
  candidate.vpp = layout.vpp;
  candidate.ep = layout.ep;
  candidate.etp = layout.etp;
  candidate.dp_shard = layout.dp_shard;
  candidate.zero = layout.zero;
  candidate.sequence_parallel = layout.sequence_parallel;
  candidate.ulysses = ulysses && layout.cp > 1;
  candidate.recompute = role.recompute;
  candidate.offload = role.offload;
  candidate.max_sequences = batching.max_sequences;
  candidate.tokens = role.role == Role::rollout
                         ? batching.prefill_tokens
                         : std::max({batching.update_tokens, batching.log_prob_tokens,
                                     batching.values_tokens, batching.reward_tokens});
  return candidate;
}

// Roles that share ranks are one block; the placement of a plan, whatever its order.
Placement placement_of(const Plan& plan, std::vector<int>& sizes, std::vector<int>& first) {
  Placement placement;
  for (const RolePlan& role : plan.roles) {
    std::size_t block = 0;
    for (; block < placement.size(); ++block) {
      if (plan.find(placement[block].front())->ranks == role.ranks) break;
    }
    if (block == placement.size()) {
      placement.emplace_back();
      sizes.push_back(static_cast<int>(role.ranks.size()));
      first.push_back(role.ranks.front());
    }
    placement[block].push_back(role.role);
  }
  return placement;
}

}  // namespace

Pricing price(Plan& plan, const Calibration& calibration) {
  Pricing pricing;
  PlanRequest request = request_of(plan, calibration);
  request.traits = traits_of(plan.engine);
  const CostEvaluator costs(request);
  Solution solution;
  solution.placement = placement_of(plan, solution.sizes, solution.first_rank);
  std::vector<std::string> left_out;
  for (const RolePlan& role : plan.roles) {
    Candidate candidate = candidate_of(role, plan.engine == "verl");
    if (role.layout.stages != layout_of(candidate, plan.model_of(role.role).layers).stages) {
      left_out.push_back("the " + std::string(name_of(role.role)) + "'s uneven stages");
    }
    if (role.role == Role::rollout && !plan.reshard.empty() && !plan.reshard[0].keep) {
      candidate.offload.parameters = true;  // unmapped while training
    }
    solution.choice.emplace(role.role, candidate);
  }
  const FixedIteration fixed = price_iteration(costs, solution.choice, solution.placement);
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
    char digest[17];
    std::snprintf(digest, sizeof digest, "%016llx", static_cast<unsigned long long>(exact.digest));
    pair.digest = digest;
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
