// Runs whose rollout vLLM's servers generate: whole runs on CPU ranks against a server that speaks
// its protocol over a model in its layout (tests/executor/vllm/fake_vllm.py).
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <regex>

#include "tests/cli/called.h"
#include "tests/cli/programs.h"
#include "tests/executor/python_oracle.h"

namespace tessera {
namespace {

class VllmRun : public ProgramTest {
 protected:
  void SetUp() override {
    python_ = python_with("torch");
    if (python_.empty()) GTEST_SKIP() << "no Python with torch";
    ::setenv("PYTHONPATH", TESSERA_SOURCE_DIR "/integrations/vllm", 1);
  }
  void TearDown() override { ::unsetenv("FAKE_VLLM_FAULT"); }

  static std::string rollout(const std::string& key, const std::string& value) {
    return " --set 'actor_rollout_ref.rollout." + key + "=" + value + "'";
  }
  std::string by_vllm(const std::string& more = "") const {
    return rollout("engine", "vllm") +
           rollout("vllm.program",
                   "[" + python_ + ", " TESSERA_SOURCE_DIR "/tests/executor/vllm/fake_vllm.py]") +
           " --set algorithm.rollout_correction.rollout_is=token" + more;
  }

  static void plan(const std::string& name, const std::string& fixed) {
    ASSERT_EQ(
        run("plan --model " + at("model") + " --cluster local-cpu --workload grpo-digits --fix " +
            fixed + " -o " + at(name + ".json")),
        0);
  }

  /// The largest difference between a token's log-prob as it was drawn and as the trainer computes
  /// it, over a whole run: importance weights of tokens are their exponential.
  static double largest_difference(const std::string& name) {
    Problems problems;
    double largest = 0;
    const auto steps = read_metrics(folder_ / name / "metrics.jsonl", problems);
    for (const StepNumbers& step : steps.value()) {
      for (const char* key : {"rollout_corr/rollout_is_max", "rollout_corr/rollout_is_min"}) {
        largest = std::max(largest, std::abs(std::log(step.data.at(key))));
      }
    }
    EXPECT_GT(largest, 0) << "two programs that round alike";
    return largest;
  }

  /// No process of the servers whose logs these are is left.
  static void expect_servers_ended(const std::string& name, int servers) {
    for (int i = 0; i < servers; ++i) {
      const std::string log = text_of(folder_ / name / ("vllm-" + std::to_string(i) + ".log"));
      std::smatch found;
      ASSERT_TRUE(std::regex_search(log, found, std::regex(R"(Started server process \[(\d+)\])")))
          << log;
      EXPECT_NE(::kill(std::stoi(found[1]), 0), 0) << "server " << i;
    }
  }

  std::string python_;
};

/// Chance is 0.1 (run_test.cc). The own engine's run has the same bound there.
TEST_F(VllmRun, LearnsAsWithOurOwnEngineAndTheLogProbsAreTheTrainers) {
  ASSERT_EQ(train("learn", 40, by_vllm() + " --reshard-verify"), 0);
  EXPECT_GT(mean_of_last(rewards("learn"), 5), 0.4);
  EXPECT_LT(largest_difference("learn"), 1e-4);
  expect_servers_ended("learn", 2);
}

TEST_F(VllmRun, EveryWayToTrainBringsItsWeights) {
  for (const auto& [name, fixed] : std::vector<std::pair<std::string, std::string>>{
           {"fsdp", "actor.tp=1 actor.pp=1 actor.zero=3 rollout.tp=4"},
           {"apart", "'placement=actor | rollout' actor.gpus=2 rollout.gpus=2"}}) {
    plan(name, fixed);
    ASSERT_EQ(train(name, 3, by_vllm() + " --reshard-verify", name + ".json"), 0) << name;
    EXPECT_LT(largest_difference(name), 1e-4) << name;
  }
}

TEST_F(VllmRun, SamplesDependOnTheSeedAlone) {
  ASSERT_EQ(train("once", 2, by_vllm()), 0);
  ASSERT_EQ(train("again", 2, by_vllm(rollout("vllm.sleep", "false"))), 0);
  EXPECT_EQ(text_of(folder_ / "once/samples.jsonl"), text_of(folder_ / "again/samples.jsonl"));
  ASSERT_EQ(train("other", 2, by_vllm(rollout("seed", "5"))), 0);
  EXPECT_NE(text_of(folder_ / "once/samples.jsonl"), text_of(folder_ / "other/samples.jsonl"));
}

TEST_F(VllmRun, ABenchOfWholeStepsTakesEitherEngine) {
  const std::string fake = TESSERA_SOURCE_DIR "/tests/executor/vllm/fake_vllm.py";
  const Called called = call(
      "bench rl --ranks 2 --device cpu --model tiny-qwen2-digits --reshard minimal --fix "
      "actor.tp=2 "
      "actor.pp=1 rollout.tp=1 --prompts 4 --samples 2 --digits 3 --response 4 --steps 1 "
      "--rollout-option 'engine: vllm' 'vllm: {program: [" +
      python_ + ", " + fake + "]}' -o " + at("bench.json"));
  EXPECT_EQ(called.code, 0) << called.out;
  EXPECT_NE(text_of(folder_ / "bench.json").find("step_s"), std::string::npos);
}

TEST_F(VllmRun, AServerThatCrashesEndsTheRunAndIsNamed) {
  ::setenv("FAKE_VLLM_FAULT", "crash:40", 1);  // in the second step
  const Called called = call("run " + at("plan.json") +
                             " --config grpo-digits --set "
                             "'data.train_files=[" +
                             at("prompts.jsonl") + "]'" + by_vllm() +
                             " --set trainer.total_training_steps=4 -o " + at("crash"));
  EXPECT_EQ(called.code, 69) << called.out;
  EXPECT_NE(called.out.find("exit code 3"), std::string::npos) << called.out;
  EXPECT_NE(called.out.find("illegal memory access"), std::string::npos) << called.out;
  expect_servers_ended("crash", 2);
}

TEST_F(VllmRun, StaleWeightsEndTheRunWhereTheyAreVerified) {
  ::setenv("FAKE_VLLM_FAULT", "stale", 1);
  EXPECT_EQ(train("stale", 2, by_vllm() + " --reshard-verify"), 69);
}

TEST_F(VllmRun, WhatVllmCannotHoldOrDoIsRefusedBeforeItStarts) {
  for (const std::string& more :
       {by_vllm(rollout("temperature", "0.5") + rollout("top_k", "4")),
        by_vllm(rollout("vllm.servers", "[\"http://127.0.0.1:8000\"]")),
        by_vllm() + " --reshard-incremental", rollout("vllm.enforce_eager", "true")}) {
    EXPECT_EQ(train("refused", 1, more), 65) << more;
    EXPECT_FALSE(fs::exists(folder_ / "refused"));
  }
}

}  // namespace
}  // namespace tessera
