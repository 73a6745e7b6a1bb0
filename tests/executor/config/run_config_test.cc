#include "executor/config/run_config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/cost_models/documents/malformed.h"
#include "tests/executor/config/good_run.h"
#include "tests/executor/config/grpo_plan.h"
#include "tests/planner/plan/sample_plan.h"

namespace tessera {
namespace {

TEST(RunConfig, ReadsWhatTheFileSays) {
  Problems problems;
  const auto config = parse_run_config(kGoodRun, "run.yaml", sample_plan(), problems);
  ASSERT_TRUE(config) << to_string(problems.at(0));
  EXPECT_EQ(config->data.train_files, (std::vector<std::filesystem::path>{"a.jsonl"}));
  EXPECT_EQ(config->algorithm.advantage.lam, 0.95);
  EXPECT_TRUE(config->algorithm.kl_ctrl.adaptive);
  EXPECT_EQ(config->algorithm.kl_ctrl.kl_coef, 0.01);
  EXPECT_EQ(config->actor.optim.lr, 1e-3);
  EXPECT_EQ(config->actor.optim.beta2, 0.95);
  EXPECT_EQ(config->actor.optim.decay, LrDecay::cosine);
  EXPECT_EQ(config->actor.objective.policy.clip_ratio_high, 0.28);
  EXPECT_EQ(config->rollout.sampling.top_p, 0.9);
  EXPECT_EQ(config->rollout.sampling.min_p, 0);
  EXPECT_EQ(config->critic.cliprange_value, 0.4);
  EXPECT_EQ(config->trainer.seed, 7u);
}

TEST(RunConfig, DefaultsAreVerlsAndThePlans) {
  Problems problems;
  const auto config = parse_run_config(kGoodRun, "run.yaml", sample_plan(), problems);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->algorithm.advantage.estimator, &kGae);
  EXPECT_TRUE(config->algorithm.use_kl_in_reward);
  EXPECT_FALSE(config->actor.objective.use_kl_loss);
  EXPECT_EQ(config->actor.objective.policy.clip_ratio_low, 0.2);
  EXPECT_EQ(config->actor.objective.policy.clip_ratio_c, 3.0);
  EXPECT_EQ(config->actor.objective.kl_loss_type.estimator, KlEstimator::k3);
  EXPECT_EQ(config->critic.optim.lr, 1e-5);
  EXPECT_EQ(config->critic.aggregation.mode, AggregationMode::token_mean);
  EXPECT_EQ(config->data.max_prompt_length, 8);
  EXPECT_EQ(config->rollout.seed, 7u);
  EXPECT_EQ(config->data.seed, 7u);
  EXPECT_EQ(config->reward.functions.functions.at(0).name, "fraction");
}

TEST(RunConfig, AGrpoPlanTakesGroupAdvantagesAndItsKlLoss) {
  std::string text = kGoodRun;
  text.erase(text.find("critic:"), text.find("trainer:") - text.find("critic:"));
  Problems problems;
  const auto config = parse_run_config(text, "run.yaml", grpo_plan(), problems);
  ASSERT_TRUE(config) << to_string(problems.at(0));
  EXPECT_EQ(config->algorithm.advantage.estimator, &kGrpo);
  EXPECT_TRUE(config->actor.objective.use_kl_loss);
  EXPECT_FALSE(config->algorithm.use_kl_in_reward);
  EXPECT_FALSE(parse_run_config(kGoodRun, "run.yaml", grpo_plan(), problems));
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].expected, "no 'critic'");
}

TEST(RunConfig, ANullClipBoundMeansClipRatio) {
  std::string text = kGoodRun;
  const std::string key = "clip_ratio_high: 0.28";
  text.replace(text.find(key), key.size(), "clip_ratio_high: null");
  Problems problems;
  const auto config = parse_run_config(text, "run.yaml", sample_plan(), problems);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->actor.objective.policy.clip_ratio_high, std::nullopt);
}

/// A run of the sample plan with this line among the rollout's.
std::string with_rollout(const std::string& line) {
  std::string text = kGoodRun;
  const std::string key = "  rollout:\n";
  return text.insert(text.find(key) + key.size(), "    " + line + "\n");
}

TEST(RunConfig, WeightsAreVerifiedInEveryTenthStepOrAsTheFileSays) {
  Problems problems;
  const auto every = [&](const std::string& text) {
    const auto config = parse_run_config(text, "run.yaml", sample_plan(), problems);
    return config ? config->rollout.verify_weights : -1;
  };
  EXPECT_EQ(every(kGoodRun), 10);
  EXPECT_EQ(every(with_rollout("verify_weights: 1")), 1);
  EXPECT_EQ(every(with_rollout("verify_weights: 0")), 0);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(every(with_rollout("verify_weights: -1")), -1);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems[0].place.find("verify_weights"), std::string::npos) << problems[0].place;
}

/// kGoodRun with `to` instead of `from`.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = kGoodRun;
  return text.replace(text.find(from), from.size(), to);
}

TEST(RunConfig, KeysOfVerlMeanWhatTheyMeanThere) {
  Problems problems;
  const Plan plan = sample_plan();
  const auto config = parse_run_config(changed("token-mean", "seq-mean-token-sum-norm"), "run.yaml",
                                       plan, problems);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->actor.aggregation.loss_scale_factor, plan.workload.response_tokens.max);
  EXPECT_EQ(config->trainer.timeout_s, 600);
  const auto patient = parse_run_config(
      changed("actor_rollout_ref:\n", "actor_rollout_ref:\n  nccl_timeout: 7200\n"), "run.yaml",
      plan, problems);
  ASSERT_TRUE(patient);
  EXPECT_EQ(patient->trainer.timeout_s, 7200);
  EXPECT_EQ(patient->trainer.memory_limit_gib, 0);
  EXPECT_FALSE(patient->trainer.random_weights);
  const auto limited = parse_run_config(
      changed("  seed: 7",
              "  seed: 7\n  memory_limit_gib: 70.5\n  allocator: expandable_segments:True\n"
              "  random_weights: true\n  prometheus_port: 9464"),
      "run.yaml", plan, problems);
  ASSERT_TRUE(limited);
  EXPECT_EQ(limited->trainer.memory_limit_gib, 70.5);
  EXPECT_EQ(limited->trainer.allocator, "expandable_segments:True");
  EXPECT_TRUE(limited->trainer.random_weights);
  EXPECT_EQ(limited->trainer.prometheus_port, 9464);
  EXPECT_EQ(patient->trainer.prometheus_port, 0);
  const auto refused = [&](const std::string& from, const std::string& to) {
    Problems found;
    EXPECT_FALSE(parse_run_config(changed(from, to), "run.yaml", plan, found)) << to;
    EXPECT_EQ(found.size(), 1u) << to;
  };
  refused("top_p: 0.9", "temperature: 0");
  refused("  seed: 7", "  default_hdfs_dir: somewhere");
  refused("  seed: 7", "  memory_limit_gib: 0");
  refused("  seed: 7", "  prometheus_port: 65536");
  refused("    clip_ratio_high: 0.28", "    fsdp_config: {reshard_after_forward: false}");
  refused("    clip_ratio_high: 0.28", "    fsdp_config: {param_offload: true}");
}

TEST(RunConfig, RoutersOfAModelWithExpertsMayHaveLossesOfTheirOwn) {
  Plan plan = sample_plan();
  const auto read = [&](const std::string& line, Problems& problems) {
    return parse_run_config(changed("    clip_ratio_high: 0.28", line), "run.yaml", plan, problems);
  };
  Problems dense, negative, of_verl, none;
  EXPECT_FALSE(read("    router_z_loss_coef: 1e-3\n    router_aux_loss_coef: 1e-3", dense));
  ASSERT_EQ(dense.size(), 2U);
  for (const Problem& problem : dense) {
    EXPECT_NE(problem.hint.find("no experts"), std::string::npos) << problem.hint;
  }
  for (auto& [name, model] : plan.models) {
    model.spec.moe = MoeSpec{.experts = 4, .experts_per_token = 2, .expert_ffn = 64};
  }
  EXPECT_FALSE(read("    router_z_loss_coef: -1", negative));
  EXPECT_FALSE(
      read("    megatron: {override_transformer_config: {moe_z_loss_coeff: 1e-3}}", of_verl));
  ASSERT_EQ(of_verl.size(), 1U);
  EXPECT_NE(of_verl[0].hint.find("router_z_loss_coef"), std::string::npos) << of_verl[0].hint;
  // Over stages, context parallelism and with layers that are computed again, too.
  RolePlan& actor = *std::ranges::find(plan.roles, Role::actor, &RolePlan::role);
  actor.recompute = Recompute::full;
  const auto set = read("    router_z_loss_coef: 1e-3\n    router_aux_loss_coef: 1e-2", none);
  ASSERT_TRUE(set) << to_string(none.at(0));
  EXPECT_EQ(set->actor.router_z_loss_coef, 1e-3);
  EXPECT_EQ(set->actor.router_aux_loss_coef, 1e-2);
}

/// In verl's keys. Nobody's choice can be replayed that nobody makes or notes.
TEST(RunConfig, RoutersMayReplayTheChoiceOfTheOldPolicyOrOfTheRollout) {
  Plan plan = sample_plan();
  const std::string place = "    clip_ratio_high: 0.28";
  const auto read = [&](const std::string& text, Problems& problems) {
    return parse_run_config(text, "run.yaml", plan, problems);
  };
  const auto with_mode = [&](const std::string& mode) {
    return changed(place, "    router_replay: {mode: " + mode + "}");
  };
  const auto refused = [&](const std::string& text, const std::string& expected,
                           const std::string& hint) {
    Problems found;
    EXPECT_FALSE(read(text, found));
    ASSERT_EQ(found.size(), 1U) << expected;
    EXPECT_EQ(found[0].file, "run.yaml");
    EXPECT_NE(found[0].place.find("router_replay"), std::string::npos) << found[0].place;
    EXPECT_NE(found[0].expected.find(expected), std::string::npos) << found[0].expected;
    EXPECT_NE(found[0].hint.find(hint), std::string::npos) << found[0].hint;
  };
  refused(with_mode("R2"), "disabled", "no experts");
  for (auto& [name, model] : plan.models) {
    model.spec.moe = MoeSpec{.experts = 4, .experts_per_token = 2, .expert_ffn = 64};
  }
  refused(with_mode("R1"), "R3", "");
  refused(changed(place, "    router_replay: {mode: R2, record_file: a}"), "tessera supports", "");
  const auto also = [](std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  refused(changed(place, "    router_replay: {mode: R2, record: true}"), "R3", "rollout");
  refused(also(with_mode("R2"), "  lam: 0.95",
               "  lam: 0.95\n  rollout_correction: {bypass_mode: true}"),
          "R3", "bypass");
  Problems none_of_record;
  const auto recorded = read(also(changed(place, "    router_replay: {mode: R3, record: true}"),
                                  "  seed: 7", "  seed: 7\n  rollout_replay: a.jsonl"),
                             none_of_record);
  ASSERT_TRUE(recorded) << to_string(none_of_record.at(0));
  EXPECT_TRUE(recorded->actor.record_experts);
  for (const auto& [text, mode] : {std::pair{"R2", RouterReplayMode::r2},
                                   {"R3", RouterReplayMode::r3},
                                   {"disabled", RouterReplayMode::disabled}}) {
    Problems none;
    const auto set = read(with_mode(text), none);
    ASSERT_TRUE(set) << to_string(none.at(0));
    EXPECT_EQ(set->actor.router_replay, mode);
  }
}

TEST(RunConfig, SeedsThatTheFileDoesNotStateAreTheDefaultOnes) {
  const auto read = [](const std::string& text) {
    Problems problems;
    auto config =
        parse_run_config(text, "run.yaml", sample_plan(), problems, {.run = 5, .order = 3});
    EXPECT_TRUE(config) << to_string(problems.at(0));
    return config.value();
  };
  const RunConfig none = read(changed("  seed: 7\n", ""));
  EXPECT_FALSE(none.trainer.seed_stated);
  EXPECT_EQ(none.trainer.seed, 5U);
  EXPECT_EQ(none.rollout.seed, 5U);
  EXPECT_EQ(none.data.seed, 3U) << "the prompts go on in their order";
  const RunConfig stated = read(kGoodRun);
  EXPECT_TRUE(stated.trainer.seed_stated);
  EXPECT_EQ(stated.trainer.seed, 7U);
  EXPECT_EQ(stated.rollout.seed, 7U);
  EXPECT_EQ(stated.data.seed, 7U);
}

TEST(RunConfig, CheckpointsAreSaidInVerlsWords) {
  const auto read = [](const std::string& lines, Problems& problems) {
    return parse_run_config(kGoodRun + lines, "run.yaml", sample_plan(), problems);
  };
  Problems problems;
  const auto none = read("", problems);
  ASSERT_TRUE(none);
  EXPECT_EQ(none->trainer.checkpoint.save_freq, -1);
  EXPECT_EQ(none->trainer.checkpoint.keep.newest, 0);
  EXPECT_EQ(none->trainer.checkpoint.resume_mode, ResumeMode::disable);
  const auto all = read(
      "  save_freq: 5\n  hf_save_freq: 20\n  max_actor_ckpt_to_keep: 3\n"
      "  max_critic_ckpt_to_keep: 3\n  save_top_k: 2\n  monitor: actor/pg_loss\n"
      "  monitor_mode: min\n  resume_mode: auto\n  resume_from_path: RUN\n",
      problems);
  ASSERT_TRUE(all) << to_string(problems.at(0));
  const CheckpointConfig& checkpoint = all->trainer.checkpoint;
  EXPECT_EQ(checkpoint.save_freq, 5);
  EXPECT_EQ(checkpoint.hf_save_freq, 20);
  EXPECT_EQ(checkpoint.keep.newest, 3);
  EXPECT_EQ(checkpoint.keep.best, 2);
  EXPECT_EQ(checkpoint.keep.metric, "actor/pg_loss");
  EXPECT_FALSE(checkpoint.keep.higher_is_better);
  EXPECT_EQ(checkpoint.resume_mode, ResumeMode::automatic);
  EXPECT_EQ(checkpoint.resume_from_path, "RUN");
  ASSERT_TRUE(read("  max_actor_ckpt_to_keep: null\n  resume_from_path: null\n", problems));
  for (const char* lines :
       {"  save_freq: 0\n", "  save_freq: -2\n", "  max_actor_ckpt_to_keep: 0\n",
        "  max_actor_ckpt_to_keep: 2\n  max_critic_ckpt_to_keep: 3\n", "  save_top_k: 1\n",
        "  resume_mode: resume_path\n", "  resume_from_path: RUN\n", "  resume_mode: newest\n"}) {
    Problems found;
    EXPECT_FALSE(read(lines, found)) << lines;
    EXPECT_EQ(found.size(), 1U) << lines;
  }
}

TEST(RunConfig, PresetsReadForTheirPlans) {
  Plan plan = sample_plan();
  Problems problems;
  EXPECT_TRUE(read_run_config("ppo-digits", plan, problems)) << to_string(problems.at(0));
  const auto grpo = read_run_config("grpo-digits", grpo_plan(), problems);
  ASSERT_TRUE(grpo) << to_string(problems.at(0));
  EXPECT_EQ(grpo->actor.optim.lr, 2e-3);
  EXPECT_EQ(grpo->actor.optim.beta2, 0.95);
  EXPECT_EQ(grpo->actor.objective.entropy_coeff, 0.1);
}

// What verl's scripts and DAPO's paper state (the files name them), for plans of the workloads of
// the same names.
TEST(RunConfig, PresetsOfPracticeReadForTheirWorkloads) {
  const auto read = [](const std::string& name) {
    Problems problems;
    Plan plan = sample_plan();
    plan.workload = *read_workload(name, problems);
    plan.schedule = default_schedule(plan.workload);
    std::erase_if(plan.roles, [&](const RolePlan& role) {
      return std::none_of(plan.schedule.begin(), plan.schedule.end(),
                          [&](const ScheduledCall& call) { return call.role == role.role; });
    });
    const auto run = read_run_config(name, plan, problems);
    EXPECT_TRUE(run) << name << " " << to_string(problems.at(0));
    return run.value_or(RunConfig{});
  };
  const RunConfig grpo = read("grpo-gsm8k");
  EXPECT_EQ(grpo.actor.optim.lr, 1e-6);
  EXPECT_EQ(grpo.trainer.total_training_steps, 105);  // 15 * (7473 / 1024)
  const RunConfig ppo = read("ppo-gsm8k");
  EXPECT_EQ(ppo.critic.optim.lr, 1e-5);
  EXPECT_EQ(ppo.trainer.total_training_steps, 435);  // 15 * (7473 / 256)
  const RunConfig dapo = read("dapo-math");
  EXPECT_EQ(dapo.actor.objective.policy.clip_ratio_high, 0.28);
  EXPECT_EQ(dapo.actor.optim.lr_warmup_steps, 320);  // 20 steps of 16 updates
}

const std::string kActor = "actor_rollout_ref.actor.", kRollout = "actor_rollout_ref.rollout.";
const Edit kEdits[] = {
    // contradictions of the plan name both values
    {"train_batch_size: 32", "train_batch_size: 64", "4:21 (data.train_batch_size)", "64",
     "32, the plan's workload.prompts_per_step"},
    {"train_batch_size: 32", "max_response_length: 512", "4:24 (data.max_response_length)", "512",
     "4, the plan's"},
    {"top_p: 0.9", "n: 8", "14:8 (" + kRollout + "n)", "8", "16, the plan's"},
    {"top_p: 0.9", "tensor_model_parallel_size: 4",
     "14:33 (" + kRollout + "tensor_model_parallel_size)", "4", "2, the plan's"},
    {"clip_ratio_high: 0.28", "ppo_mini_batch_size: 32",
     "11:26 (" + kActor + "ppo_mini_batch_size)", "32", "16, the plan's"},
    {"clip_ratio_high: 0.28", "ppo_epochs: 2", "11:17 (" + kActor + "ppo_epochs)", "2",
     "1, the plan's"},
    {"clip_ratio_high: 0.28", "use_kl_loss: true", "11:18 (" + kActor + "use_kl_loss)", "true",
     "false, as the plan's workload.kl"},
    {"lam: 0.95", "use_kl_in_reward: false", "6:21 (algorithm.use_kl_in_reward)", "false",
     "true, as the plan's"},
    {"lam: 0.95", "adv_estimator: grpo", "6:18 (algorithm.adv_estimator)", "\"grpo\"", "gae"},
    {"seed: 7", "nnodes: 2", "19:11 (trainer.nnodes)", "2", "1, the plan's"},
    {"  rollout:\n", "  model: {path: other}\n  rollout:\n", "13:17 (actor_rollout_ref.model.path)",
     "\"other\"", "\"tiny\", the plan's"},
    // keys of verl with a reason, and unknown ones
    {"clip_ratio_high: 0.28", "strategy: fsdp", "11:15 (" + kActor + "strategy)",
     "verl's key 'strategy'", "supports"},
    {"top_p: 0.9", "gpu_memory_utilization: 0.5", "14:29 (" + kRollout + "gpu_memory_utilization)",
     "verl's key", "supports"},
    {"seed: 7", "logger: [console]", "19:11 (trainer.logger)", "verl's key 'logger'", ""},
    {"seed: 7", "total_epochs: 1", "19:17 (trainer.total_epochs)", "verl's key", ""},
    {"lam: 0.95", "lambda: 0.95", "6:11 (algorithm.lambda)", "the unknown key 'lambda'", ""},
    {"version: 1\n", "ppo_trainer: {}\n", "1:14 (ppo_trainer)", "the unknown key", ""},
    // wrong values
    {"version: 1", "version: 3", "1:10 (version)", "3", "version 1"},
    {"data:\n  train_files: [a.jsonl]\n  train_batch_size: 32\n", "", "1:1 (data)", "no 'data'",
     "a value"},
    {"train_files: [a.jsonl]", "train_files: []", "3:16 (data.train_files)", "0 items",
     "at least one file"},
    {"train_files: [a.jsonl]", "train_files: [1]", "3:17 (data.train_files)", "1", "a string"},
    {"lam: 0.95", "lam: 1.5", "6:8 (algorithm.lam)", "1.5", "from 0 to 1"},
    {"lam: 0.95", "kl_penalty: full", "6:15 (algorithm.kl_penalty)", "\"full\"", "kl, k1"},
    {"type: adaptive", "type: adaptve", "7:19 (algorithm.kl_ctrl.type)", "\"adaptve\"",
     "fixed or adaptive"},
    {"lr: 1e-3", "lr: -1e-3", "10:17 (" + kActor + "optim.lr)", "-0.001", "at least 0"},
    {"lr: 1e-3", "lr: 1e-3x", "10:17 (" + kActor + "optim.lr)", "\"1e-3x\"", "a number"},
    {"betas: [0.9, 0.95]", "betas: [0.9]", "10:30 (" + kActor + "optim.betas)", "1 items", "two"},
    {"betas: [0.9, 0.95]", "betas: [0.9, 1]", "10:30 (" + kActor + "optim.betas)", "2 items",
     "below 1"},
    {"cosine", "linear", "10:62 (" + kActor + "optim.lr_scheduler_type)", "\"linear\"",
     "constant, cosine"},
    {"token-mean", "token_mean", "12:20 (" + kActor + "loss_agg_mode)", "\"token_mean\"",
     "token-mean"},
    {"clip_ratio_high: 0.28", "policy_loss: {loss_mode: dro}", "11:18", "no 'dro_beta'", "above 0"},
    {"clip_ratio_high: 0.28", "clip_ratio_c: 1", "11:19 (" + kActor + "clip_ratio_c)", "1",
     "above 1"},
    {"top_p: 0.9", "min_p: 1.5", "14:12 (" + kRollout + "min_p)", "1.5", "0 to 1"},
    {"top_p: 0.9", "top_p: 0", "14:12 (" + kRollout + "top_p)", "0", "above 0 to 1"},
    {"top_p: 0.9", "top_p: 0.9\n    top_p: 1", "15:5", "the key 'top_p' again", "once"},
    {"cliprange_value: 0.4", "cliprange_value: no", "16:20 (critic.cliprange_value)", "\"no\"",
     "a number"},
    {"  total_training_steps: 20\n", "", "18:3 (trainer.total_training_steps)", "no 'total", ""},
    {"seed: 7", "seed: -7", "19:9 (trainer.seed)", "-7", "at least 0"},
    {kGoodRun, "[]", "1:1", "a list of 0 items", "a map"},
};

TEST(RunConfig, RefusesEveryMalformedFileWithItsPlaceAndReason) {
  const Plan plan = sample_plan();
  expect_refused(kGoodRun, kEdits, [&](const std::string& text, Problems& problems) {
    return parse_run_config(text, "run.yaml", plan, problems).has_value();
  });
}

}  // namespace
}  // namespace tessera
