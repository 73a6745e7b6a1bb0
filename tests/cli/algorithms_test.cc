// Every algorithm that a run file can choose, run whole on one CPU rank and on two: the same
// losses.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <future>
#include <set>

#include "executor/estimators/estimators.h"
#include "executor/losses/policy_losses.h"
#include "tests/cli/programs.h"

namespace tessera {
namespace {

struct Choice {
  std::string name;
  std::string overrides;                   // --set words
  std::string workload = "grpo";           // ppo: with a critic
  std::vector<std::string> reported = {};  // metrics that tell that it was done
};

std::string set(const std::string& key, const std::string& value) {
  return " --set '" + key + "=" + value + "'";
}
const std::string kActor = "actor_rollout_ref.actor.", kLoss = kActor + "policy_loss.",
                  kCorrection = "algorithm.rollout_correction.";

std::string estimator(const std::string& name) { return set("algorithm.adv_estimator", name); }
std::string loss_mode(const std::string& name) { return set(kLoss + "loss_mode", name); }

class Algorithms : public ProgramTest {
 protected:
  static void SetUpTestSuite() {
    ProgramTest::SetUpTestSuite();
    for (const int ranks : {1, 2, 4}) {
      std::ofstream(folder_ / ("cpu" + std::to_string(ranks) + ".yaml"))
          << "version: 1\nname: few-cpus\ngpu: cpu\nmemory_gib: 1\npeak_tflops_bf16: "
             "0.02\nhbm_gb_s: 5\n"
             "nodes: 1\nintra_node: {link: shared memory, gb_s_per_gpu_one_way: 1}\ngpus_per_node: "
          << ranks << "\n";
    }
    for (const std::string algorithm : {"grpo", "ppo"}) {
      std::ofstream(folder_ / (algorithm + ".yaml"))
          << "version: 1\nalgorithm: " << algorithm
          << "\nprompts_per_step: 8\nsamples_per_prompt: 4\nprompt_tokens: 8\nresponse_tokens: "
             "{mean: 4, cv: 0, max: 4}\nmini_batches: 2\nepochs: 1\nkl: loss\n";
    }
    for (const std::string algorithm : {"grpo", "ppo"}) {
      plan(algorithm, "1", 1, "");
      plan(algorithm, "2", 2, " --fix actor.tp=1 actor.pp=1 rollout.tp=1");
      plan(algorithm, "4", 4, " --fix actor.tp=1 actor.pp=1 rollout.tp=2");
    }
    // Replicas have micro-batches of their own; within one replica they are a single rank's.
    plan("grpo", "tp2", 2, " --fix actor.tp=2 actor.pp=1 rollout.tp=2");
    plan("grpo", "tp2pp2", 4, " --fix actor.tp=2 actor.pp=2 rollout.tp=2");
  }

  static void plan(const std::string& algorithm, const std::string& name, int ranks,
                   const std::string& more) {
    ASSERT_EQ(run("plan --model " + at("model") + " --cluster " +
                  at("cpu" + std::to_string(ranks) + ".yaml") + " --workload " +
                  at(algorithm + ".yaml") + more + " -o " + at(algorithm + name + ".json")),
              0)
        << algorithm << name;
  }

  static std::vector<StepNumbers> numbers(const std::string& name) {
    Problems problems;
    return read_metrics(folder_ / name / "metrics.jsonl", problems).value();
  }

  static std::vector<StepNumbers> trained(const Choice& choice, const std::string& ranks) {
    const std::string name = choice.name + ranks;
    const std::string file = choice.workload == "ppo" ? "ppo-digits" : "grpo-digits";
    EXPECT_EQ(
        run("run " + at(choice.workload + ranks + ".json") + " --config " + file +
            " --set 'data.train_files=[" + at("prompts.jsonl") + "]'" +
            set("trainer.total_training_steps", "2") +
            set("actor_rollout_ref.actor.optim.lr", "1e-4") + choice.overrides + " -o " + at(name)),
        0)
        << name;
    return numbers(name);
  }

  static void expect_same(const std::vector<StepNumbers>& got,
                          const std::vector<StepNumbers>& want) {
    ASSERT_EQ(want.size(), 2U);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t step = 0; step < want.size(); ++step) {
      for (const char* key : {"actor/loss", "actor/pg_loss", "critic/score/mean",
                              "critic/advantages/mean", "critic/advantages/max"}) {
        EXPECT_NEAR(got[step].data.at(key), want[step].data.at(key), 1e-5) << key << " " << step;
      }
      const double norm = want[step].data.at("actor/grad_norm");
      EXPECT_NEAR(got[step].data.at("actor/grad_norm"), norm, 1e-5 * std::max(1.0, norm)) << step;
    }
  }

  using Plans = std::vector<std::string>;
  static void expect_same_on_all_ranks(const Choice& choice, const Plans& more = {"2", "4"}) {
    auto alone = std::async(std::launch::async, [&] { return trained(choice, "1"); });
    std::vector<std::vector<StepNumbers>> together;
    for (const std::string& ranks : more) together.push_back(trained(choice, ranks));
    const std::vector<StepNumbers> one = alone.get();
    for (std::size_t i = 0; i < more.size(); ++i) {
      SCOPED_TRACE(choice.name + " on " + more[i]);
      expect_same(together[i], one);
    }
    for (const std::string& key : choice.reported) {
      EXPECT_TRUE(one.front().data.contains(key)) << key;
    }
  }
};

TEST_F(Algorithms, EveryEstimatorGivesTheSameLossesOnAllRanks) {
  for (const Estimator* each : kEstimators) {
    const std::string name(each->name);
    std::string more = estimator(name);
    if (each->reads_components) {
      more += set("algorithm.gdpo_reward_keys", "[fraction, exact]") +
              set("algorithm.gdpo_reward_weights", "[1, 0.5]");
    }
    expect_same_on_all_ranks({name, more, each->reads_values ? "ppo" : "grpo"});
  }
}

// Covariances are a micro-batch's: tensor-parallel ranks have the same ones as a single rank.
TEST_F(Algorithms, EveryPolicyLossGivesTheSameLossesOnAllRanks) {
  for (const PolicyLoss* each : kPolicyLosses) {
    if (each == &kBypass) continue;
    const std::string name(each->name);
    std::string more = loss_mode(name);
    if (each == &kDro) more += set(kLoss + "dro_beta", "0.1");
    if (each == &kClipCov)
      more += set(kLoss + "clip_cov_ratio", "0.1") + set(kLoss + "clip_cov_lb", "0.01");
    if (each == &kKlCov) more += set(kLoss + "kl_cov_ratio", "0.1");
    const bool by_micro_batch = each == &kClipCov || each == &kKlCov;
    expect_same_on_all_ranks({"loss-" + name, more},
                             by_micro_batch ? Plans{"tp2", "tp2pp2"} : Plans{"2", "4"});
  }
}

TEST_F(Algorithms, EveryCorrectionGivesTheSameLossesOnAllRanks) {
  const std::string rejects = set(kCorrection + "rollout_rs", "token_k1,seq_mean_k3") +
                              set(kCorrection + "rollout_rs_threshold", "0.99999_1.00001,0.1");
  for (const Choice& choice : std::vector<Choice>{
           {"correct-token",
            set(kCorrection + "rollout_is", "token") + rejects,
            "grpo",
            {"rollout_corr/rollout_is_mean", "rollout_corr/rollout_rs_masked_fraction"}},
           {"correct-sequence",
            set(kCorrection + "rollout_is", "sequence") +
                set(kCorrection + "rollout_is_batch_normalize", "true"),
            "ppo",
            {"rollout_corr/rollout_is_batch_norm_factor"}},
           {"bypass-clip", set(kCorrection + "bypass_mode", "true"), "grpo", {"rollout_corr/kl"}},
           {"bypass-reinforce",
            set(kCorrection + "bypass_mode", "true") + set(kCorrection + "loss_type", "reinforce") +
                set(kCorrection + "rollout_is", "token"),
            "grpo",
            {"rollout_corr/rollout_is_mean"}}}) {
    expect_same_on_all_ranks(choice);
  }
}

/// Groups with equal scores are replaced, whatever the ranks; the scores that are left differ.
TEST_F(Algorithms, DapoFiltersGroupsAndShapesLongResponses) {
  const std::string filter =
      set("algorithm.filter_groups.enable", "true") + set("algorithm.filter_groups.metric", "acc");
  expect_same_on_all_ranks(
      {"filter",
       filter,
       "grpo",
       {"training/filter_groups/evicted_samples", "training/num_gen_batches"}});
  const std::vector<StepNumbers> steps = numbers("filter1");
  EXPECT_GT(steps.front().data.at("training/num_gen_batches"), 1);
  EXPECT_GT(steps.front().data.at("training/filter_groups/evicted_samples"), 0);
  const std::string buffer = "reward.reward_kwargs.overlong_buffer_cfg.";
  const std::string shaped = set("reward.reward_manager.name", "dapo") +
                             set(buffer + "enable", "true") + set(buffer + "len", "2") +
                             set(buffer + "log", "true");
  expect_same_on_all_ranks({"overlong", shaped, "grpo", {"reward/overlong_reward/mean"}});
  EXPECT_LT(numbers("overlong1").front().data.at("critic/score/min"), -0.4);
  // What rewards say of themselves is said with the filter, too, of all that was scored.
  expect_same_on_all_ranks(
      {"filter-overlong", filter + shaped, "grpo", {"reward/overlong_reward/mean"}});
  EXPECT_LT(numbers("filter-overlong1").front().data.at("reward/overlong_reward/mean"), -0.1);
}

TEST_F(Algorithms, GroupsThatNeverDifferEndTheRunAtItsLimit) {
  const std::string words =
      kTessera + " run " + at("grpo1.json") + " --config grpo-digits --set 'data.train_files=[" +
      at("prompts.jsonl") + "]'" + set("algorithm.filter_groups.enable", "true") +
      set("algorithm.filter_groups.max_num_gen_batches", "2") + set("reward.function", "exact") +
      " -o " + at("never") + " >" + at("never.out") + " 2>&1";
  const int status = std::system(words.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 1);
  const std::string told = text_of(at("never.out"));
  EXPECT_NE(told.find("--set algorithm.filter_groups.max_num_gen_batches=2: found"),
            std::string::npos)
      << told;
}

TEST_F(Algorithms, PfPpoDistillationAndKlGiveTheSameLossesOnAllRanks) {
  expect_same_on_all_ranks({"pf-ppo", set("algorithm.use_pf_ppo", "true"), "ppo"});
  const std::string distill = "distillation.";
  ASSERT_EQ(run("init-model --model tiny-qwen2-digits --digits --seed 9 -o " + at("teacher")), 0);
  expect_same_on_all_ranks(
      {"distill",
       set(distill + "enabled", "true") + set(kActor + "kl_loss_coef", "0") +
           set(distill + "distillation_loss.use_task_rewards", "false") +
           set(distill + "teacher_models.teacher_model.model_path", at("teacher")),
       "grpo",
       {"distillation/loss"}});
  EXPECT_GT(numbers("distill1").front().data.at("distillation/loss"), 0.01)
      << "the teacher is another model";
}

}  // namespace
}  // namespace tessera
