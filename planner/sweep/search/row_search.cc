#include "planner/sweep/search/row_search.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cost_models/documents/problem.h"
#include "planner/engines/engine.h"
#include "planner/plan/phase_seconds.h"
#include "planner/request/candidate.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"
#include "planner/request/settings.h"
#include "planner/request/solution.h"
#include "planner/search/search.h"
#include "planner/search/slots.h"
#include "planner/space/layout_space.h"
#include "planner/sweep/completions.h"
#include "planner/sweep/row_request.h"

namespace tessera {
namespace {

bool allowed(const Candidate& layout, const ModelSpec& model) {
  Problems problems;
  validate(layout_of(layout, model.layers), model.layers, layout.gpus, "", "", problems);
  return problems.empty();
}

// The completions of a row as spaces, with every way to save memory beside their own.
std::vector<LayoutSpace> train_spaces(const SweepRow& row, CostEvaluator& costs) {
  const PlanRequest& request = costs.request();
  const ModelSpec& model = request.models.at("actor").spec;
  std::vector<LayoutSpace> spaces;
  for (const TrainLayout& each : train_completions(row, model, request.cluster).layouts) {
    Candidate layout = candidate_of(each, longest_sequence(request.workload));
    if (!allowed(layout, model)) continue;
    LayoutSpace space{.batches = {{layout.tokens}}};
    for (const Offload& offload :
         {Offload{}, Offload{.optimizer = true}, Offload{true, true, true}}) {
      if (row.offload_optimizer && (offload.parameters || !offload.optimizer)) continue;
      space.choices.push_back({layout.zero, layout.recompute, offload});
    }
    layout.tokens = 0;
    space.layout = layout;
    spaces.push_back(std::move(space));
  }
  return spaces;
}

std::vector<LayoutSpace> gen_spaces(const SweepRow& row, CostEvaluator& generating) {
  const PlanRequest& request = generating.request();
  const ModelSpec& model = request.models.at("actor").spec;
  std::vector<LayoutSpace> spaces;
  for (const GenLayout& each : gen_completions(row, model, request.cluster).layouts) {
    LayoutSpace space{.layout = candidate_of(each)};
    if (!allowed(space.layout, model)) continue;
    for (const bool unmap : {false, true}) {
      if (row.rollout_weights.value_or(RolloutWeights(unmap)) != RolloutWeights(unmap)) continue;
      space.choices.push_back({.offload = {.parameters = unmap}});
    }
    const std::int64_t sequences = (request.workload.sequences() + each.dp - 1) / each.dp;
    for (std::int64_t n = sequences; n >= 1; n = n == 1 ? 0 : (n + 1) / 2) {
      space.batches.insert(space.batches.begin(), rollout_batch(request.workload, n));
    }
    spaces.push_back(std::move(space));
  }
  return spaces;
}

// What runs have that do not say it: no context or expert parallelism, a rollout without stages, a
// distributed optimizer.
SweepRow as_published(SweepRow row) {
  row.cp = row.cp.value_or(1);
  row.ep = row.ep.value_or(1);
  row.zero = row.zero.value_or(1);
  row.gen_pp = row.gen_pp.value_or(1);
  row.gen_ep = row.gen_ep.value_or(1);
  return row;
}

// Generation is priced for all batches that are under way at once, and takes its part of it.
Evaluator evaluator_of(CostEvaluator& costs, CostEvaluator& generating, std::int64_t batches) {
  Evaluator evaluator = costs.evaluator();
  if (batches == 1) return evaluator;
  const auto part = [batches](PhaseSeconds seconds) {
    seconds[Phase::gen] /= static_cast<double>(batches);
    return seconds;
  };
  const Evaluator own = evaluator, all = generating.evaluator();
  evaluator.role = [=](const Candidate& candidate) {
    if (candidate.role != Role::rollout) return own.role(candidate);
    RoleCost cost = all.role(candidate);
    cost.seconds = part(cost.seconds);
    return cost;
  };
  evaluator.seconds = [=](const Candidate& candidate) {
    return candidate.role == Role::rollout ? part(all.seconds(candidate)) : own.seconds(candidate);
  };
  evaluator.bytes = [=](const Candidate& candidate) {
    return candidate.role == Role::rollout ? all.bytes(candidate) : own.bytes(candidate);
  };
  return evaluator;
}

/// The words of --fix that say what the row's cells say; `longest`: tokens of a sequence. Where the
/// row names no engine, an empty cp, ep, gen_ep or gen_pp is 1 and an empty zero 1, as published
/// runs have them.
FixedSettings settings_of(const SweepRow& stated, const ModelSpec& model, std::int64_t longest) {
  const SweepRow row = stated.engine.empty() ? as_published(stated) : stated;
  FixedSettings settings;
  const auto fix = [&](Role role, Field field, const SweepRow::Count& value) {
    if (value) settings.values[{role, field}] = *value;
  };
  // Experts alone on their ranks are cut as the rest is; those of groups stay whole.
  const auto fix_experts = [&](Role role, const SweepRow::Count& ep, const SweepRow::Count& etp,
                               const SweepRow::Count& tp) {
    if (!model.moe) return;
    fix(role, Field::ep, ep);
    fix(role, Field::etp, etp || !ep ? etp : *ep == 1 ? tp : SweepRow::Count(1));
  };
  const Role actor = Role::actor, rollout = Role::rollout;
  const std::int64_t zero = row.zero.value_or(0);
  fix(actor, Field::gpus, train_ranks(row));
  fix(actor, Field::tp, row.tp);
  // ZeRO-2 and 3 (FSDP) go without a pipeline unless the row says otherwise.
  fix(actor, Field::pp, zero >= 2 && !row.pp ? SweepRow::Count(1) : row.pp);
  fix(actor, Field::dp, row.dp);
  fix(actor, Field::cp, row.cp);
  if (row.cp.value_or(1) > 1 && row.zero) fix(actor, Field::context, zero == 3 ? 1 : 0);
  fix(actor, Field::vpp, row.vpp);
  fix_experts(actor, row.ep, row.etp, row.tp);
  fix(actor, Field::zero, row.zero);
  if (zero == 3) fix(actor, Field::dp_shard, row.dp);
  if (row.recompute) fix(actor, Field::recompute, static_cast<int>(*row.recompute));
  if (row.sequence_parallel == false) fix(actor, Field::sequence_parallel, 0);
  const bool scatters = row.sequence_parallel.value_or(row.engine.empty());
  if (scatters && row.tp.value_or(1) > 1) fix(actor, Field::sequence_parallel, 1);
  if (row.micro_batch) fix(actor, Field::tokens, *row.micro_batch * longest);
  if (row.offload_optimizer) fix(actor, Field::offload, 1);
  fix(rollout, Field::gpus, gen_ranks(row));
  fix(rollout, Field::tp, row.gen_tp);
  fix(rollout, Field::pp, row.gen_pp);
  fix(rollout, Field::dp, row.gen_dp);
  fix_experts(rollout, row.gen_ep, {}, row.gen_tp);
  if (row.rollout_weights) {
    fix(rollout, Field::offload, *row.rollout_weights == RolloutWeights::unmap ? 2 : 0);
  }
  return settings;
}

}  // namespace

std::optional<Solution> search_row(CostEvaluator& costs, CostEvaluator& generating,
                                   const SweepRow& row) {
  const bool apart = on_own_gpus(row);
  const auto train_gpus = static_cast<int>(train_ranks(row));
  const auto gen_gpus = static_cast<int>(gen_ranks(row));
  if (!apart && train_gpus != gen_gpus) return std::nullopt;
  PlanRequest trained = costs.request(), generated = generating.request();
  trained.fixed = generated.fixed =
      settings_of(row, trained.models.at("actor").spec, longest_sequence(trained.workload));
  const Capabilities& table =
      engine_named(row.engine.empty() ? kAnyEngine : std::string_view(row.engine)).capabilities;
  const int lag = apart && row.policy_lag.value_or(1) > 0 ? 1 : 0;
  const std::vector<int>& lags = table.pools.rollout_lags;
  if (apart && std::find(lags.begin(), lags.end(), lag) == lags.end()) return std::nullopt;
  SearchProblem problem = search_problem(trained, table, costs);
  problem.placements = apart ? std::vector<Placement>{{{Role::actor}, {Role::rollout}}}
                             : std::vector<Placement>{{{Role::actor, Role::rollout}}};
  problem.policy_lags = {lag};
  problem.sizes = {std::min(train_gpus, gen_gpus), std::max(train_gpus, gen_gpus)};
  if (train_gpus == gen_gpus) problem.sizes.pop_back();
  // A row may take more nodes than its cluster has.
  const std::int64_t per_node = problem.cluster.gpus_per_node;
  const auto nodes_for = [&](int gpus) { return (gpus + per_node - 1) / per_node; };
  problem.cluster.nodes = std::max<std::int64_t>(
      problem.cluster.nodes,
      apart ? nodes_for(train_gpus) + nodes_for(gen_gpus) : nodes_for(train_gpus));
  DistinctLimits limits(trained.workload);
  problem.spaces = [&](Role role, int gpus) -> std::vector<LayoutSpace> {
    const bool rollout = role == Role::rollout;
    if (gpus != (rollout ? gen_gpus : train_gpus)) return {};
    auto spaces = enumerate_layouts(rollout ? generated : trained, table, role, gpus, limits);
    if (!spaces.empty() || !row.engine.empty()) return spaces;
    return rollout ? gen_spaces(row, generating) : train_spaces(row, costs);
  };
  problem.evaluator = evaluator_of(costs, generating, batches_under_way(row));
  FrontStore store;
  SearchResult result = search_with_slots(problem, generated, store).result;
  if (result.best.empty()) return std::nullopt;
  return std::move(result.best.front());
}

}  // namespace tessera
