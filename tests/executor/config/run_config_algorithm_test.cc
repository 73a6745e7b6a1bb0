// What a run file may choose of the algorithm: estimators, losses, correction, filter,
// distillation.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "cost_models/documents/problem.h"
#include "executor/config/run_config.h"
#include "tests/executor/config/grpo_plan.h"

namespace tessera {
namespace {

/// The names of a table's rows; what editors are told of run.yaml is written by hand.
TEST(RunConfig, TakesTheEstimatorsAndLossesThatItsSchemaNames) {
  std::ifstream stream(std::string(TESSERA_SOURCE_DIR) + "/docs/schemas/run.schema.json");
  const nlohmann::json schema = nlohmann::json::parse(stream);
  const auto told = [&](const char* place) {
    return schema.at(nlohmann::json::json_pointer(place)).at("enum");
  };
  nlohmann::json estimators = nlohmann::json::array(), losses = nlohmann::json::array();
  for (const Estimator* estimator : kEstimators) estimators.push_back(estimator->name);
  for (const PolicyLoss* loss : kPolicyLosses) losses.push_back(loss->name);
  EXPECT_EQ(told("/properties/algorithm/properties/adv_estimator"), estimators);
  EXPECT_EQ(told("/properties/actor_rollout_ref/properties/actor/properties/policy_loss/properties/"
                 "loss_mode"),
            losses);
}

/// A run file with these maps `algorithm` and `actor`.
std::string of_grpo(const std::string& algorithm, const std::string& actor = "",
                    const std::string& more = "") {
  return "data: {train_files: a.jsonl}\nalgorithm: {" + algorithm +
         "}\nactor_rollout_ref: {actor: {" + actor + "}}\ntrainer: {total_training_steps: 1}\n" +
         more;
}

TEST(RunConfig, TakesEveryEstimatorAndLossThatItsPlanSuits) {
  for (const Estimator* each : kEstimators) {
    Problems problems;
    const std::string keys = each->reads_components ? ", gdpo_reward_keys: [exact]" : "";
    const auto config =
        parse_run_config(of_grpo("adv_estimator: " + std::string(each->name) + keys), "run.yaml",
                         each->reads_values ? sample_plan() : grpo_plan(), problems);
    ASSERT_TRUE(config) << each->name << " " << to_string(problems.at(0));
    EXPECT_EQ(config->algorithm.advantage.estimator, each);
  }
  for (const PolicyLoss* each : kPolicyLosses) {
    if (each == &kBypass) continue;
    Problems problems;
    const auto config = parse_run_config(
        of_grpo("", "policy_loss: {dro_beta: 1, loss_mode: " + std::string(each->name) + "}"),
        "run.yaml", grpo_plan(), problems);
    ASSERT_TRUE(config) << each->name << " " << to_string(problems.at(0));
    EXPECT_EQ(config->actor.objective.policy.loss, each);
  }
}

TEST(RunConfig, ReadsCorrectionFilterBufferAndDistillation) {
  Problems problems;
  const auto config = parse_run_config(
      of_grpo("rollout_correction: {rollout_is: sequence, rollout_is_threshold: \"0.5_3\", "
              "rollout_rs: \"token_k1,seq_max_k3\", rollout_rs_threshold: \"0.5_2,0.3\"}, "
              "filter_groups: {enable: true, metric: acc, max_num_gen_batches: 5}",
              "tau_pos: 2, policy_loss: {loss_mode: sapo}",
              "reward: {reward_manager: {name: dapo}, reward_kwargs: {overlong_buffer_cfg: "
              "{enable: true, len: 2, penalty_factor: 0.5}}}\n"
              "distillation: {enabled: true, distillation_loss: {loss_mode: k2, use_task_rewards: "
              "false, loss_max_clamp: 4}, teacher_models: {teacher_model: {model_path: big}}}\n"),
      "run.yaml", grpo_plan(), problems);
  ASSERT_TRUE(config) << to_string(problems.at(0));
  const RolloutCorrection& correction = config->algorithm.rollout_correction.value();
  EXPECT_EQ(correction.rollout_is, WeightLevel::sequence);
  EXPECT_EQ(correction.bounds.lower, 0.5);
  EXPECT_EQ(correction.bounds.upper, 3);
  ASSERT_EQ(correction.rejections.size(), 2U);
  EXPECT_NEAR(correction.rejections[0].upper, std::log(2), 1e-12);
  EXPECT_EQ(correction.rejections[1].level, RejectionLevel::sequence_max);
  EXPECT_EQ(config->algorithm.filter_metric, FilterMetric::accuracy);
  EXPECT_EQ(config->algorithm.filter_groups.max_num_gen_batches, 5);
  EXPECT_EQ(config->actor.objective.policy.tau_pos, 2);
  EXPECT_EQ(config->reward.overlong.len, 2);
  EXPECT_EQ(config->reward.overlong.max_resp_len, 4);
  EXPECT_EQ(config->actor.teacher, "big");
  EXPECT_EQ(config->actor.objective.distillation.loss_max_clamp, 4);
  EXPECT_FALSE(config->actor.objective.distillation.use_task_rewards);
}

TEST(RunConfig, TheBypassIsTheActorsLoss) {
  Problems problems;
  const auto config = parse_run_config(
      of_grpo("rollout_correction: {bypass_mode: true, loss_type: reinforce, rollout_is: token}"),
      "run.yaml", grpo_plan(), problems);
  ASSERT_TRUE(config) << to_string(problems.at(0));
  const PolicyLossOptions& policy = config->actor.objective.policy;
  EXPECT_EQ(policy.loss, &kBypass);
  EXPECT_EQ(policy.bypass, BypassLoss::reinforce);
  EXPECT_EQ(policy.correction.rollout_is, WeightLevel::token);
}

TEST(RunConfig, AlgorithmsThatDoNotFitTogetherAreRefused) {
  Plan single = grpo_plan();
  single.workload.samples_per_prompt = 1;
  const auto refused = [](const std::string& text, const Plan& plan) {
    Problems problems;
    EXPECT_FALSE(parse_run_config(text, "run.yaml", plan, problems)) << text;
    EXPECT_EQ(problems.size(), 1U) << text;
  };
  refused(of_grpo("adv_estimator: gdpo"), grpo_plan());
  refused(of_grpo("adv_estimator: gdpo, gdpo_reward_keys: [exact], gdpo_reward_weights: [1, 2]"),
          grpo_plan());
  refused(of_grpo("adv_estimator: grpo_passk"), single);
  refused(of_grpo("filter_groups: {enable: true}"), single);
  refused(of_grpo("filter_groups: {metric: length}"), grpo_plan());
  refused(of_grpo("use_pf_ppo: true"), grpo_plan());
  std::string replay = of_grpo("filter_groups: {enable: true}");
  replay.replace(replay.find("_steps: 1}"), 10, "_steps: 1, rollout_replay: a.jsonl}");
  refused(replay, grpo_plan());
  refused(of_grpo("rollout_correction: {rollout_rs: token_k2, rollout_rs_threshold: \"1_2\"}"),
          grpo_plan());
  refused(of_grpo("rollout_correction: {rollout_is_threshold: \"2_1\"}"), grpo_plan());
  refused(of_grpo("adv_estimator: optimal_token_baseline, rollout_correction: {bypass_mode: true}"),
          grpo_plan());
  refused(of_grpo("", "policy_loss: {loss_mode: bypass_mode}"), grpo_plan());
  const std::string buffer = "reward_kwargs: {overlong_buffer_cfg: {enable: true, len: ";
  refused(of_grpo("", "", "reward: {" + buffer + "2}}}\n"), grpo_plan());
  refused(of_grpo("", "", "reward: {reward_manager: {name: dapo}, " + buffer + "9}}}\n"),
          grpo_plan());
  refused(of_grpo("", "", "distillation: {enabled: true, distillation_loss: {loss_mode: k1}}\n"),
          grpo_plan());
  refused(
      of_grpo("", "",
              "distillation: {enabled: true, distillation_loss: {loss_mode: forward_kl_topk}}\n"),
      grpo_plan());
}

}  // namespace
}  // namespace tessera
