#include "executor/config/run_config_algorithm.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/enum_names.h"
#include "executor/config/run_config_correction.h"
#include "executor/config/run_config_readers.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

/// The estimators for a dataflow with or without a critic's values, by name.
std::string names_of_estimators(bool values) {
  std::string names;
  for (const Estimator* each : kEstimators) {
    if (each->reads_values != values) continue;
    names += (names.empty() ? "" : " or ") + std::string(each->name);
  }
  return names;
}

void read_kl_control(ObjectReader& parent, KlControlConfig& control) {
  auto reader = parent.object("kl_ctrl", false);
  if (!reader) return;
  std::string type = "fixed";
  reader->optional("type", type);
  if (type != "fixed" && type != "adaptive") {
    const std::vector<std::string> types{"fixed", "adaptive"};
    reader->refuse("type", "fixed or adaptive", did_you_mean(type, types));
  }
  control.adaptive = type == "adaptive";
  reader->optional("kl_coef", control.kl_coef, kFromZero);
  reader->optional("target_kl", control.target_kl, kAboveZero);
  reader->optional("horizon", control.horizon, kAboveZero);
  reader->refuse_unknown_keys();
}

/// Every option of the table once; several rows may read the same.
void read_estimator_options(ObjectReader& reader, AdvantageOptions& advantage) {
  std::vector<std::string_view> read;
  for (const Estimator* each : kEstimators) {
    for (const EstimatorOption& option : each->options) {
      if (std::find(read.begin(), read.end(), option.key) != read.end()) continue;
      read.push_back(option.key);
      if (option.fraction) reader.optional(option.key, advantage.*option.fraction, kFraction);
      if (option.above_zero) reader.optional(option.key, advantage.*option.above_zero, kAboveZero);
      if (option.flag) reader.optional(option.key, advantage.*option.flag);
    }
  }
}

bool has_reward_model(const Plan& plan) { return plan.find(Role::reward) != nullptr; }

void read_gdpo(ObjectReader& reader, const Plan& plan, AdvantageOptions& advantage) {
  reader.list("gdpo_reward_keys", advantage.gdpo_reward_keys, false);
  reader.list("gdpo_reward_weights", advantage.gdpo_reward_weights, {}, false);
  const std::size_t keys = advantage.gdpo_reward_keys.size();
  if (!advantage.estimator->reads_components) return;
  if (keys == 0) reader.refuse("gdpo_reward_keys", "names of rules, which gdpo weighs up");
  if (!advantage.gdpo_reward_weights.empty() && advantage.gdpo_reward_weights.size() != keys) {
    reader.refuse("gdpo_reward_weights", "one number for each of gdpo_reward_keys");
  }
  if (has_reward_model(plan)) {
    reader.refuse("adv_estimator", "another estimator: a reward model gives one score");
  }
}

void read_estimator(ObjectReader& reader, const Plan& plan, bool values,
                    AdvantageOptions& advantage) {
  reader.optional("adv_estimator", advantage.estimator, kEstimators);
  const Estimator& estimator = *advantage.estimator;
  if (estimator.reads_values != values) {
    reader.refuse("adv_estimator", names_of_estimators(values) + ", as the plan's dataflow has " +
                                       (values ? "a call 'values'" : "no call 'values'"));
  }
  if (plan.workload.samples_per_prompt < estimator.least_group) {
    reader.refuse("adv_estimator", "another estimator: the plan has " +
                                       std::to_string(plan.workload.samples_per_prompt) +
                                       " samples of a prompt");
  }
  read_estimator_options(reader, advantage);
  read_gdpo(reader, plan, advantage);
}

struct NamedFilterMetric {
  FilterMetric metric;
  std::string_view name;
};
/// verl's names: `reward` and the sums of token rewards are one here.
constexpr std::array<NamedFilterMetric, 5> kFilterMetrics{
    {{FilterMetric::reward, "reward"},
     {FilterMetric::reward, "seq_reward"},
     {FilterMetric::reward, "seq_final_reward"},
     {FilterMetric::accuracy, "acc"},
     {FilterMetric::score, "score"}}};

void read_filter_groups(ObjectReader& parent, const Plan& plan, AlgorithmConfig& algorithm) {
  auto reader = parent.object("filter_groups", false);
  if (!reader) return;
  FilterGroups& filter = algorithm.filter_groups;
  reader->optional("enable", filter.enable);
  reader->optional("max_num_gen_batches", filter.max_num_gen_batches, kNotNegative);
  reader->optional("max_inflight_gen_batches", filter.max_inflight_gen_batches, kPositive);
  std::string metric = "reward";
  reader->optional("metric", metric);
  const auto named =
      std::find_if(kFilterMetrics.begin(), kFilterMetrics.end(),
                   [&](const NamedFilterMetric& each) { return each.name == metric; });
  if (named == kFilterMetrics.end()) {
    reader->refuse("metric", "reward, seq_reward, seq_final_reward, acc or score");
  } else {
    algorithm.filter_metric = named->metric;
  }
  if (filter.enable && has_reward_model(plan)) {
    reader->refuse("enable", "false: a reward model scores only after generation has ended");
  }
  if (filter.enable && plan.workload.samples_per_prompt < 2) {
    reader->refuse("enable", "false: the plan has one sample of a prompt");
  }
  reader->refuse_unknown_keys();
}

constexpr auto kReweights = enum_names<PfPpoReweight>({{PfPpoReweight::pow, "pow"},
                                                       {PfPpoReweight::max_min, "max_min"},
                                                       {PfPpoReweight::max_random, "max_random"}});

void read_pf_ppo(ObjectReader& parent, const AdvantageOptions& advantage, PfPpo& pf_ppo) {
  parent.optional("use_pf_ppo", pf_ppo.enable);
  if (pf_ppo.enable && !advantage.estimator->reads_values) {
    parent.refuse("use_pf_ppo", "false: PF-PPO goes with adv_estimator gae");
  }
  auto reader = parent.object("pf_ppo", false);
  if (!reader) return;
  std::string method(kReweights[pf_ppo.reweight_method]);
  reader->optional("reweight_method", method);
  const auto named = kReweights.find(method);
  if (!named) {
    reader->refuse("reweight_method", "pow, max_min or max_random");
  } else {
    pf_ppo.reweight_method = *named;
  }
  reader->optional("weight_pow", pf_ppo.weight_pow, kFromZero);
  reader->refuse_unknown_keys();
}

}  // namespace

AlgorithmConfig read_algorithm(ObjectReader& root, const Plan& plan) {
  AlgorithmConfig algorithm;
  const bool values = std::any_of(plan.workload.dataflow.begin(), plan.workload.dataflow.end(),
                                  [](const Call& call) { return call.phase == Phase::values; });
  algorithm.advantage.estimator =
      *std::find_if(kEstimators.begin(), kEstimators.end(),
                    [&](const Estimator* each) { return each->reads_values == values; });
  algorithm.use_kl_in_reward = plan.workload.kl == KlPlace::reward;
  auto reader = root.object("algorithm", false);
  if (!reader) return algorithm;
  read_estimator(*reader, plan, values, algorithm.advantage);
  fixed_flag(*reader, "use_kl_in_reward", algorithm.use_kl_in_reward, "workload.kl");
  read_kl_type(*reader, "kl_penalty", algorithm.kl_penalty);
  read_kl_control(*reader, algorithm.kl_ctrl);
  read_rollout_correction(*reader, algorithm);
  read_filter_groups(*reader, plan, algorithm);
  read_pf_ppo(*reader, algorithm.advantage, algorithm.pf_ppo);
  reader->refuse_unknown_keys();
  return algorithm;
}

}  // namespace tessera
