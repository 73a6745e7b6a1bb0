// The programs as a user calls them: plan, run on four CPU ranks, compare.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "simulator/timeline/metrics.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

const std::string kTessera = std::string(TESSERA_BINARY_DIR) + "/cli/tessera";

/// Exit code of `tessera WORDS`, its output discarded.
int run(const std::string& words) {
  const int status = std::system((kTessera + " " + words + " >/dev/null 2>&1").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Run : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = fs::temp_directory_path() / ("tessera-run-test-" + std::to_string(getpid()));
    fs::create_directories(folder_);
    ASSERT_EQ(run("init-model --model tiny-qwen2-digits --digits --seed 1 -o " + at("model")), 0);
    ASSERT_EQ(run("make-data --task reverse --digits 3 --count 512 -o " + at("prompts.jsonl")), 0);
    ASSERT_EQ(run("plan --model " + at("model") +
                  " --cluster local-cpu --workload grpo-digits --fix actor.tp=2 actor.pp=2 "
                  "rollout.tp=2 rollout.dp=2 -o " +
                  at("plan.json")),
              0);
  }
  static void TearDownTestSuite() { fs::remove_all(folder_); }

  static std::string at(const std::string& name) { return (folder_ / name).string(); }

  static int train(const std::string& name, int steps, const std::string& more = "",
                   const std::string& plan = "plan.json") {
    return run("run " + at(plan) + " --config grpo-digits --set 'data.train_files=[" +
               at("prompts.jsonl") + "]' --set trainer.total_training_steps=" +
               std::to_string(steps) + " " + more + " -o " + at(name));
  }

  static std::vector<double> rewards(const std::string& name) {
    Problems problems;
    const auto steps = read_metrics(folder_ / name / "metrics.jsonl", problems);
    std::vector<double> values;
    for (const StepNumbers& step : steps.value())
      values.push_back(step.data.at("critic/score/mean"));
    return values;
  }

  static fs::path folder_;
};
fs::path Run::folder_;

double mean_of_last(const std::vector<double>& values, std::size_t count) {
  double sum = 0;
  for (std::size_t i = values.size() - count; i < values.size(); ++i) sum += values[i];
  return sum / static_cast<double>(count);
}

TEST_F(Run, GrpoLearnsWithAReshardInEveryStepAndBytesAreThePlans) {
  ASSERT_EQ(train("learn", 40), 0);
  const std::vector<double> reward = rewards("learn");
  ASSERT_EQ(reward.size(), 40u);
  EXPECT_LT(reward[0], 0.15) << "random weights answer by chance";
  EXPECT_GT(mean_of_last(reward, 5), 0.4);
  EXPECT_EQ(run("compare " + at("plan.json") + " " + at("learn")), 0);
  EXPECT_TRUE(fs::exists(folder_ / "learn/hf/model.safetensors"));
}

TEST_F(Run, TheSameSeedGivesTheSameBits) {
  ASSERT_EQ(train("once", 4), 0);
  ASSERT_EQ(train("again", 4), 0);
  EXPECT_EQ(text_of(folder_ / "once/samples.jsonl"), text_of(folder_ / "again/samples.jsonl"));
  EXPECT_EQ(text_of(folder_ / "once/hf/model.safetensors"),
            text_of(folder_ / "again/hf/model.safetensors"));
}

TEST_F(Run, GatheringWholeTensorsTrainsTheSameModel) {
  ASSERT_EQ(train("minimal", 3), 0);
  ASSERT_EQ(train("full", 3, "--reshard full"), 0);
  EXPECT_EQ(text_of(folder_ / "minimal/samples.jsonl"), text_of(folder_ / "full/samples.jsonl"));
  EXPECT_EQ(run("compare " + at("full/plan.json") + " " + at("full")), 0);
}

TEST_F(Run, WithoutALearningRateTheRewardStaysAtChance) {
  ASSERT_EQ(train("still", 8, "--set actor_rollout_ref.actor.optim.lr=0"), 0);
  EXPECT_LT(mean_of_last(rewards("still"), 4), 0.15);
}

TEST_F(Run, NeverOverwritesAnotherRun) {
  fs::create_directory(folder_ / "taken");
  EXPECT_EQ(train("taken", 1), 65);
  EXPECT_TRUE(fs::is_empty(folder_ / "taken"));
}

TEST_F(Run, ExitCodesSayWhatWasWrong) {
  EXPECT_EQ(run("run"), 64);
  EXPECT_EQ(run("plan --model nobody --cluster local-cpu --workload grpo-digits"), 65);
  EXPECT_EQ(run("plan --model llama3.1-70b --cluster h100-8 --workload ppo-7b-1k"), 2);
  EXPECT_EQ(train("config", 1, "--set actor_rollout_ref.actor.optim.learning=1"), 65);
  EXPECT_EQ(run("simulate " + at("plan.json")), 0);
  EXPECT_EQ(run("explain " + at("plan.json")), 0);
}

}  // namespace
}  // namespace tessera
