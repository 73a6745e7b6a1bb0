#include "planner/sweep/price.h"

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cost_models/spec/node_groups.h"
#include "planner/engines/engine.h"
#include "planner/pricing/evaluate.h"
#include "planner/pricing/role/role_model.h"
#include "planner/sweep/row_pricing.h"
#include "planner/sweep/row_request.h"

namespace tessera {

struct SweepPricer::State {
  const SweepInputs& inputs;
  RowSearch search;
  ModelTables tables;
  std::map<std::string, std::unique_ptr<CostEvaluator>> evaluators;

  State(const SweepInputs& all, RowSearch how) : inputs(all), search(std::move(how)) {}

  CostEvaluator& evaluator(const SweepRow& row, const RowLengths& lengths, int view) {
    auto& entry = evaluators[key_of(row, lengths, view)];
    if (!entry) {
      entry = std::make_unique<CostEvaluator>(request_for(inputs, row, lengths, view), tables);
    }
    return *entry;
  }
};

void refuse(SweepResult& result, const std::string& why) {
  const std::string rest = std::exchange(result.why, why);
  append(result.why, rest);
  result.feasible = false;
  result.step_s = result.gen_s = result.reshard_s = result.log_prob_s = result.update_s = {};
  result.tokens_per_s_per_gpu = result.mfu = {};
}

SweepPricer::SweepPricer(const SweepInputs& inputs, RowSearch search)
    : state_(std::make_unique<State>(inputs, std::move(search))) {}
SweepPricer::~SweepPricer() = default;

SweepResult SweepPricer::price(const SweepRow& row) {
  if (row.engine.empty() || row.kind != SweepKind::iteration) return price_as_is(row);
  const std::vector<const Engine*> engines =
      answering(engine_named(row.engine), {Role::actor, Role::rollout});
  if (engines.size() == 1) return price_as_is(row);
  std::optional<SweepResult> best;
  for (const Engine* engine : engines) {
    SweepRow own = row;
    own.engine = engine->name;
    SweepResult result = price_as_is(own);
    const auto quicker = [&] {
      return result.step_s && (!best->step_s || *result.step_s < *best->step_s);
    };
    if (best && !(result.feasible != best->feasible ? result.feasible : quicker())) continue;
    append(result.why, "engine " + engine->name);
    best = std::move(result);
  }
  return *std::move(best);
}

SweepResult SweepPricer::price_as_is(const SweepRow& row) {
  const ClusterSpec& cluster = state_->inputs.clusters.find(row.cluster)->second.spec;
  SweepResult best = price_on(row, 0);
  if (cluster.groups.empty() || !best.peak_gib) return best;  // impossible wherever it runs
  append(best.why, "on " + type_name(cluster, 0));
  const std::vector<GroupRange> views = pool_views(cluster);
  for (std::size_t view = 1; view < views.size(); ++view) {
    SweepResult here = price_on(row, static_cast<int>(view));
    const bool room = here.gpus <= nodes_of(cluster, views[view]) * cluster.gpus_per_node;
    const bool better = here.feasible != best.feasible ? here.feasible : here.step_s < best.step_s;
    if (!here.step_s || !room || !better) continue;
    best = std::move(here);
    append(best.why, "on " + type_name(cluster, static_cast<int>(view)));
  }
  return best;
}

SweepResult SweepPricer::price_on(const SweepRow& row, int view) {
  SweepResult result;
  const SweepInputs& inputs = state_->inputs;
  result.why = contradictions(row, inputs.models.find(row.model)->second.spec,
                              inputs.clusters.find(row.cluster)->second.spec.gpus_per_node);
  if (!result.why.empty()) return result;
  const RowLengths lengths = lengths_of(row);
  CostEvaluator& costs = state_->evaluator(row, lengths, view);
  CostEvaluator& generating =
      state_->evaluator(with_batches(row, batches_under_way(row)), lengths, view);
  const ClusterSpec& cluster = costs.request().cluster;
  auto made = with_gpus(row, cluster, 1);
  const std::string too_long = beyond_positions(row, costs.request());
  if (!made || !too_long.empty()) {
    result = price_row(costs, generating, made.value_or(row), state_->search, lengths.assumed);
    if (!too_long.empty()) refuse(result, too_long);
    return result;
  }
  // The fewest GPUs that fit, by doubling; where none does, what the most would need.
  for (std::int64_t scale = 1; made && !result.feasible; scale *= 2) {
    const SweepResult tried = price_row(costs, generating, *made, state_->search, lengths.assumed);
    if (tried.feasible || tried.step_s || !result.step_s) result = tried;
    std::string chosen;
    if (made->train_gpus != row.train_gpus) {
      append(chosen, "train_gpus=" + std::to_string(*made->train_gpus));
    }
    if (made->gen_gpus != row.gen_gpus) {
      append(chosen, "gen_gpus=" + std::to_string(*made->gen_gpus));
    }
    if (result.feasible) append(result.why, chosen + ", the fewest that fit");
    made = with_gpus(row, cluster, 2 * scale);
  }
  return result;
}

}  // namespace tessera