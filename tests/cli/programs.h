// A tiny model, prompts and a plan for four CPU ranks, and the programs called on them as a user
// does. One folder per test suite.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "cost_models/documents/problem.h"
#include "simulator/timeline/metrics.h"

namespace tessera {

namespace fs = std::filesystem;

inline const std::string kTessera = std::string(TESSERA_BINARY_DIR) + "/cli/tessera";

/// Exit code of `tessera WORDS`, its output discarded.
inline int run(const std::string& words) {
  const int status = std::system((kTessera + " " + words + " >/dev/null 2>&1").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

inline std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class ProgramTest : public testing::Test {
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

  inline static fs::path folder_;
};

/// The programs as a user calls them.
class Run : public ProgramTest {};

inline double mean_of_last(const std::vector<double>& values, std::size_t count) {
  double sum = 0;
  for (std::size_t i = values.size() - count; i < values.size(); ++i) sum += values[i];
  return sum / static_cast<double>(count);
}

}  // namespace tessera
