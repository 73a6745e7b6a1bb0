#include "planner/pricing/fixed.h"

#include <algorithm>
#include <utility>

#include "cost_models/documents/problem.h"
#include "planner/engines/engine.h"
#include "planner/plan/amounts.h"
#include "planner/plan/phase_seconds.h"
#include "planner/pricing/iteration.h"
#include "planner/pricing/memory_limit.h"
#include "planner/pricing/role/groups.h"
#include "planner/request/candidate.h"
#include "planner/request/request.h"

namespace tessera {
namespace {

std::string number(std::int64_t value) { return std::to_string(value); }

}  // namespace

std::pair<std::string, Bytes> largest_class(const MemoryUse& use) {
  const auto classes = memory_classes(use);
  const auto* most =
      std::max_element(classes.begin(), classes.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return {std::string(most->first), Bytes{most->second}};
}

int first_rank_of_stage(const Candidate& candidate, const EngineTraits& traits, int stage) {
  const int below = candidate.tp * candidate.cp;
  const bool stages_apart = dealt_order(candidate, traits) == RankOrder::megatron;
  return stage * (stages_apart ? below * candidate.dp : below);
}

std::string impossible(const PlanRequest& request, const Candidate& candidate) {
  const ModelSpec model = model_of(request, candidate.role);
  const Workload& workload = request.workload;
  const std::string role(name_of(candidate.role));
  Problems problems;
  validate(layout_of(candidate, model.layers), model.layers, candidate.gpus, "", role, problems);
  if (!problems.empty()) {
    return role + ": " + problems.front().found + ", not " + problems.front().expected;
  }
  if (candidate.gpus > request.cluster.gpus()) {
    return role + ": " + number(candidate.gpus) + " GPUs of " + number(request.cluster.gpus());
  }
  if (candidate.tp > model.query_heads) {
    return role + ": tp " + number(candidate.tp) + " exceeds " + number(model.query_heads) +
           " query heads";
  }
  const std::int64_t chunks = std::int64_t{candidate.pp} * candidate.vpp;
  if (chunks > model.layers) {
    return role + ": pp x vpp = " + number(chunks) + " exceeds " + number(model.layers) + " layers";
  }
  const std::int64_t experts = model.moe ? model.moe->experts : 0;
  if (candidate.ep > 1 && experts == 0) {
    return role + ": ep " + number(candidate.ep) + " of a model that has no experts";
  }
  if (candidate.ep > 1 && experts % candidate.ep != 0) {
    return role + ": ep " + number(candidate.ep) + " does not divide " + number(experts) +
           " experts";
  }
  const bool trains = is_trained(workload, candidate.role);
  const std::int64_t batch =
      trains ? workload.sequences() / workload.mini_batches : workload.sequences();
  const bool rollout = candidate.role == Role::rollout;
  const bool prompts =
      rollout && engine_named(request.engine).prompts == PromptDealing::whole_prompts;
  if (prompts && candidate.dp > workload.prompts_per_step) {
    return role + ": dp " + number(candidate.dp) + " exceeds " + number(workload.prompts_per_step) +
           " prompts";
  }
  if (candidate.dp > batch || (!rollout && batch % candidate.dp != 0)) {
    return role + ": dp " + number(candidate.dp) + " does not divide its batch of " +
           number(batch) + " sequences";
  }
  return {};
}

Bytes bytes_together(const std::vector<RoleCost>& roles) {
  Bytes resident, transient, in_reshard;
  for (const RoleCost& cost : roles) {
    resident += cost.resident;
    transient = std::max(transient, cost.peak - cost.resident);
    in_reshard += cost.in_reshard - cost.resident;
  }
  return resident + std::max(transient, in_reshard);
}

FixedCost price_fixed(CostEvaluator& costs, const Candidate& candidate) {
  FixedCost fixed;
  const PlanRequest& seen = costs.request(candidate.view);
  fixed.limit = memory_limit(seen);
  fixed.why = impossible(costs.request(), candidate);
  if (!fixed.why.empty()) return fixed;
  const RoleCost cost = costs.cost(candidate);
  fixed.seconds = cost.seconds;
  fixed.communication = cost.communication;
  for (const Phase phase : phases_of(costs.request().workload, candidate.role)) {
    const MemoryUse use = costs.memory(candidate, phase);
    fixed.memory[phase] = use;
    if (use.total() <= fixed.peak) continue;
    fixed.peak = Bytes{use.total()};
    fixed.worst = phase;
  }
  if (fixed.peak <= fixed.limit) return fixed;
  const auto [name, bytes] = largest_class(fixed.memory.at(fixed.worst));
  const int rank =
      first_rank_of_stage(candidate, seen.traits, costs.fullest_stage(candidate, fixed.worst));
  fixed.why = "rank " + number(rank) + " in phase " + std::string(name_of(fixed.worst)) +
              " needs " + of_usable(seen, fixed.peak) + "; largest part " + name + ", " +
              in_gib(bytes);
  return fixed;
}

namespace {

// Of calls without a model, which run beside the actor.
PhaseSeconds call_seconds(CostEvaluator& costs, const std::map<Role, Candidate>& choice) {
  const auto actor = choice.find(Role::actor);
  return compute_call_seconds(costs.request(actor == choice.end() ? 0 : actor->second.view));
}

}  // namespace

PhaseSeconds iteration_seconds(CostEvaluator& costs, const std::map<Role, Candidate>& choice,
                               bool apart) {
  PhaseSeconds seconds = call_seconds(costs, choice);
  for (const auto& [role, candidate] : choice) seconds += costs.seconds(candidate);
  if (choice.contains(Role::rollout) && choice.contains(Role::actor)) {
    seconds[Phase::reshard] =
        costs.reshard_seconds(choice.at(Role::actor), choice.at(Role::rollout), !apart);
  }
  return seconds;
}

FixedIteration price_iteration(CostEvaluator& costs, const std::map<Role, Candidate>& choice,
                               const Placement& placement, int policy_lag) {
  const PlanRequest& request = costs.request();
  FixedIteration result;
  result.seconds = call_seconds(costs, choice);
  const auto note = [&](const std::string& why) {
    if (!why.empty()) result.why += (result.why.empty() ? "" : "; ") + why;
  };
  std::map<Role, RoleCost> priced;
  for (const auto& [role, candidate] : choice) {
    FixedCost cost = price_fixed(costs, candidate);
    note(cost.why);
    if (cost.limit > 0 && !cost.memory.empty()) priced[role] = costs.cost(candidate);
    result.seconds += cost.seconds;
    result.roles[role] = std::move(cost);
  }
  if (priced.size() != choice.size()) return result;
  const bool apart = rollout_apart(placement);
  if (choice.contains(Role::rollout) && choice.contains(Role::actor)) {
    result.seconds[Phase::reshard] =
        costs.reshard_seconds(choice.at(Role::actor), choice.at(Role::rollout), !apart);
  }
  for (const auto& block : placement) {
    std::vector<RoleCost> together;
    for (const Role role : block) together.push_back(priced.at(role));
    result.peak.push_back(bytes_together(together));
    const PlanRequest& seen = costs.request(choice.at(block.front()).view);
    if (result.peak.back() > memory_limit(seen) && result.why.empty()) {
      note("the roles of block " + number(static_cast<std::int64_t>(result.peak.size()) - 1) +
           " together need " + of_usable(seen, result.peak.back()));
    }
  }
  const auto schedule = schedule_of(default_schedule(request.workload), placement, policy_lag);
  result.step_s = Iteration(schedule, blocks_of(schedule, placement)).step_seconds(result.seconds);
  return result;
}

}  // namespace tessera
