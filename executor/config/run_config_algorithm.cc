#include "executor/config/run_config_algorithm.h"

#include <algorithm>
#include <string>
#include <vector>

#include "cost_models/documents/problem.h"
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
  AdvantageOptions& advantage = algorithm.advantage;
  reader->optional("adv_estimator", advantage.estimator, kEstimators);
  if (advantage.estimator->reads_values != values) {
    reader->refuse("adv_estimator", names_of_estimators(values) + ", as the plan's dataflow has " +
                                        (values ? "a call 'values'" : "no call 'values'"));
  }
  for (const Estimator* each : kEstimators) {
    for (const EstimatorOption& option : each->options) {
      if (option.fraction) reader->optional(option.key, advantage.*option.fraction, kFraction);
      if (option.flag) reader->optional(option.key, advantage.*option.flag);
    }
  }
  fixed_flag(*reader, "use_kl_in_reward", algorithm.use_kl_in_reward, "workload.kl");
  read_kl_type(*reader, "kl_penalty", algorithm.kl_penalty);
  read_kl_control(*reader, algorithm.kl_ctrl);
  refuse_unsupported(*reader,
                     {{"use_pf_ppo", "PF-PPO is not supported"},
                      {"pf_ppo", "PF-PPO is not supported"},
                      {"filter_groups", "dynamic sampling is not supported"},
                      {"rollout_correction", "rollouts come from the policy that is trained"},
                      {"gdpo_reward_keys", "gdpo is not supported"},
                      {"gdpo_reward_weights", "gdpo is not supported"}});
  reader->refuse_unknown_keys();
  return algorithm;
}

void read_policy_loss(ObjectReader& actor, PolicyLossOptions& policy) {
  auto loss = actor.object("policy_loss", false);
  if (!loss) return;
  loss->optional("loss_mode", policy.loss, kPolicyLosses);
  for (const PolicyLoss* each : kPolicyLosses) {
    for (const PolicyLossOption& option : each->options) {
      loss->optional(option.key, policy.*option.above_zero, kAboveZero);
    }
  }
  for (const PolicyLossOption& option : policy.loss->options) {
    if (policy.*option.above_zero > 0) continue;
    loss->refuse(option.key, "a number above 0 with loss_mode " + std::string(policy.loss->name));
  }
  loss->refuse_unknown_keys();
}

}  // namespace tessera
