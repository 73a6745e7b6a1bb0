#include "executor/commands/train_reward_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <variant>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/utc_now.h"
#include "cost_models/fit/derived_calibration.h"
#include "cost_models/spec/device/device_kind.h"
#include "cost_models/spec/length_table.h"
#include "executor/commands/rank_error.h"
#include "planner/explain/infeasible.h"
#include "planner/explain/planner.h"
#include "planner/explain/report.h"
#include "planner/plan/model_source.h"
#include "planner/plan/plan_json.h"
#include "planner/request/request.h"

namespace tessera {
namespace {

/// Tokens of every sequence that the model is given, behind a prompt of one: a workload has no
/// sequence without.
LengthSpec lengths_behind_one(const PreferenceSet& pairs) {
  std::vector<std::int64_t> which(pairs.pairs.size());
  std::iota(which.begin(), which.end(), 0);
  std::vector<std::int64_t> lengths;
  for (const TokenSequence& sequence : pairs.sequences(which)) {
    lengths.push_back(std::max<std::int64_t>(sequence.tokens() - 1, 1));
  }
  return lengths_of(std::move(lengths));
}

Workload workload_of(const RewardPlanQuestion& question, const PreferenceSet& pairs) {
  return {.algorithm = "custom",
          .dataflow =
              {{Phase::values, Role::critic, CallKind::infer, {"prompts"}, {"scores"}},
               {Phase::update_critic, Role::critic, CallKind::train, {"prompts", "scores"}, {}}},
          .prompts_per_step = question.pairs_per_step,
          .samples_per_prompt = 2,
          .prompt_tokens = 1,
          .response_tokens = lengths_behind_one(pairs)};
}

/// The better of the plans with the optimizer's states on the device and in host memory: a training
/// has no other phase in which weights could leave the device.
PlanOutcome best_of(const PlanRequest& request) {
  Problems problems;
  std::optional<PlanOutcome> best;
  for (const std::int64_t where : {kOffloadNone, kOffloadOptimizer}) {
    if (!request.fixed.allows(Role::critic, Field::offload, where)) continue;
    PlanRequest one = request;
    one.fixed.values[{Role::critic, Field::offload}] = where;
    PlanOutcome outcome = required(make_plan(one, problems), problems);
    const auto* const found = std::get_if<Plan>(&outcome);
    const auto* const known = best ? std::get_if<Plan>(&*best) : nullptr;
    const bool better = found != nullptr &&
                        (known == nullptr || found->prediction.step_s < known->prediction.step_s);
    if (!best || better) best = std::move(outcome);
  }
  return *std::move(best);
}

}  // namespace

std::vector<std::string> settings_of(const ParallelLayout& layout) {
  const auto setting = [](const char* field, const auto& value) {
    return std::string("critic.") + field + "=" + value;
  };
  const auto number = [&](const char* field, int value) {
    return setting(field, std::to_string(value));
  };
  std::vector<std::string> fixed{number("tp", layout.tp),
                                 number("cp", layout.cp),
                                 number("pp", layout.pp),
                                 number("vpp", layout.vpp),
                                 number("dp", layout.dp),
                                 number("zero", layout.zero),
                                 number("sequence_parallel", layout.sequence_parallel ? 1 : 0)};
  if (layout.zero == 3) fixed.push_back(number("dp_shard", layout.dp_shard));
  if (layout.cp > 1) fixed.push_back(setting("context", layout.ulysses ? "ulysses" : "ring"));
  return fixed;
}

RewardPlan plan_reward_training(const RewardPlanQuestion& question, const PreferenceSet& pairs) {
  Problems problems;
  PlanRequest request;
  request.fixed = parse_settings(question.fixed, problems);
  request.models.emplace("actor", required(read_model_source(question.model, problems), problems));
  request.cluster = required(read_cluster_spec(question.cluster, problems), problems);
  request.workload = workload_of(question, pairs);
  request.calibration = required(calibration_for_cluster(request.cluster, problems), problems);
  RoleDTypes types = dtypes_of(request, Role::critic);
  const DType fallback = is_cpu(request.cluster.device) ? DType::fp32 : DType::bf16;
  types.param = types.wire = question.dtype.value_or(fallback);
  request.dtypes.emplace(Role::critic, types);
  request.tessera_version = TESSERA_VERSION;
  request.created = utc_now();
  PlanOutcome outcome = best_of(request);
  if (const auto* infeasible = std::get_if<Infeasible>(&outcome)) {
    throw Error(ExitCode::infeasible, describe(*infeasible));
  }
  return {std::get<Plan>(std::move(outcome)), std::move(request.calibration)};
}

void follow(const Plan& plan, RewardTrainingOptions& training) {
  const RolePlan& role = *plan.find(Role::critic);
  training.layout = role.layout;
  training.rank_order = role.rank_order;
  training.dtype = role.dtypes.param;
  training.recompute = role.recompute;
  training.optimizer.offload = role.offload.optimizer;
  training.values_tokens = role.batching.values_tokens;
  training.update_tokens = role.batching.update_tokens;
  training.plan_json = to_json(plan);
}

std::string described(const RewardPlan& planned) {
  return describe(planned.plan, &planned.calibration);
}

}  // namespace tessera
