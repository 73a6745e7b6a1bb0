// Runs with checkpoints that others go on from: plans of several layouts for one model, a whole run
// of six steps, and what two runs are compared by.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cost_models/documents/problem.h"
#include "simulator/timeline/metrics.h"
#include "tests/cli/programs.h"

namespace tessera {

class Resume : public ProgramTest {
 protected:
  static void SetUpTestSuite() {
    ProgramTest::SetUpTestSuite();
    std::ofstream(at("ppo.yaml")) << "version: 1\nalgorithm: ppo\nprompts_per_step: 16\n"
                                     "samples_per_prompt: 4\nprompt_tokens: 8\n"
                                     "response_tokens: {mean: 4, cv: 0, max: 4}\n"
                                     "mini_batches: 2\nepochs: 1\nkl: reward\n";
    std::string two = text_of(TESSERA_SOURCE_DIR "/configs/clusters/local-cpu.yaml");
    const std::string four = "gpus_per_node: 4";
    ASSERT_NE(two.find(four), std::string::npos);
    two.replace(two.find(four), four.size(), "gpus_per_node: 2");
    std::ofstream(at("two.yaml")) << two;
    plan("ppo.json", "actor.tp=2 actor.pp=2 critic.tp=2 critic.pp=2 rollout.tp=2 rollout.dp=2");
    plan("fsdp.json",
         "actor.tp=1 actor.pp=1 actor.zero=3 critic.tp=1 critic.pp=1 critic.zero=3 "
         "rollout.tp=2 rollout.dp=2");
    plan("zero1.json",
         "actor.tp=2 actor.pp=1 actor.zero=1 critic.tp=1 critic.pp=1 critic.zero=1 "
         "rollout.tp=2 rollout.dp=2");
    plan("two.json",
         "actor.tp=1 actor.pp=1 actor.zero=0 critic.tp=2 critic.pp=1 "
         "rollout.tp=1 rollout.dp=2");
  }
  static void plan(const std::string& name, const std::string& fixed) {
    const std::string cluster = name == "two.json" ? at("two.yaml") : "local-cpu";
    ASSERT_EQ(run("plan --model " + at("model") + " --cluster " + cluster + " --workload " +
                  at("ppo.yaml") + " --fix placement=colocated " + fixed + " -o " + at(name)),
              0)
        << name;
  }

  /// Words of a PPO run with an adaptive divergence in the reward, all that a checkpoint holds.
  static std::string words(const std::string& name, int steps, const std::string& plan_file) {
    return "run " + at(plan_file) + " --config ppo-digits --set 'data.train_files=[" +
           at("prompts.jsonl") + "]' --set algorithm.kl_ctrl.type=adaptive" +
           " --set algorithm.kl_ctrl.horizon=200 --set trainer.total_training_steps=" +
           std::to_string(steps) + " -o " + at(name) + " ";
  }

  static int train_ppo(const std::string& name, int steps, const std::string& more = "",
                       const std::string& plan_file = "ppo.json") {
    const std::string line =
        kTessera + " " + words(name, steps, plan_file) + more + " >" + at("messages") + " 2>&1";
    const int status = std::system(line.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  static std::string messages() { return text_of(at("messages")); }

  static fs::path checkpoint(const std::string& name, int step) {
    return folder_ / name / "checkpoints" / ("global_step_" + std::to_string(step));
  }
  static std::vector<StepNumbers> metrics(const std::string& name) {
    Problems problems;
    auto read = read_metrics(folder_ / name / "metrics.jsonl", problems);
    return read ? *read : std::vector<StepNumbers>{};
  }
  static void copy(const std::string& from, const std::string& to) {
    fs::copy(folder_ / from, folder_ / to, fs::copy_options::recursive);
  }

  /// A run of six steps with checkpoints after every second, made once.
  static const std::string& whole() {
    static const std::string name = [] {
      EXPECT_EQ(train_ppo("whole", 6, "--set trainer.save_freq=2"), 0) << messages();
      return std::string("whole");
    }();
    return name;
  }
  /// The same up to its step 4, as a folder of its own.
  static void half(const std::string& name) {
    copy(whole(), name);
    fs::remove_all(checkpoint(name, 6));
    fs::remove_all(folder_ / name / "hf");
  }

  static void expect_same_file(const fs::path& a, const fs::path& b) {
    EXPECT_TRUE(text_of(a) == text_of(b)) << a << " differs from " << b;
  }

  static void expect_same_numbers(const std::string& name, int first, double tolerance) {
    const auto got = metrics(name), want = metrics(whole());
    ASSERT_EQ(want.size(), 6U);
    ASSERT_FALSE(got.empty());
    EXPECT_EQ(got.back().step, 6);
    for (const StepNumbers& step : got) {
      if (step.step < first) continue;
      for (const char* key : {"actor/pg_loss", "critic/vf_loss", "actor/reward_kl_penalty_coeff",
                              "critic/score/mean"}) {
        const double wanted = want[static_cast<std::size_t>(step.step - 1)].data.at(key);
        EXPECT_NEAR(step.data.at(key), wanted, tolerance) << key << " of step " << step.step;
      }
    }
  }
};

}  // namespace tessera
