// Runs whose rollout vLLM's servers generate: whole runs on CPU ranks against a server that speaks
// its protocol over a model in its layout (tests/executor/vllm/fake_vllm.py).
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <regex>
#include <sstream>

#include "executor/rl/samples.h"
#include "executor/rollout/prompt_dealing.h"
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
  void TearDown() override {
    ::unsetenv("FAKE_VLLM_FAULT");
    ::unsetenv("FAKE_VLLM_LOG_PROMPTS");
  }

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

// What is trained lies on ranks of its own, which send it: the samples are those of mapped weights,
// and the certificate holds in every step.
TEST_F(VllmRun, WeightsAreSentToServersApart) {
  plan("apart",
       "'placement=actor | rollout' actor.gpus=2 rollout.gpus=2 actor.tp=1 actor.pp=1 actor.zero=3 "
       "rollout.tp=2");
  ASSERT_EQ(train("mapped", 3, by_vllm(), "apart.json"), 0);
  const std::string sent = by_vllm(rollout("vllm.weights", "messages"));
  ASSERT_EQ(train("sent", 3, sent + " --reshard-verify", "apart.json"), 0);
  EXPECT_EQ(text_of(folder_ / "mapped/samples.jsonl"), text_of(folder_ / "sent/samples.jsonl"));
  Problems problems;
  const auto steps = read_metrics(folder_ / "sent/metrics.jsonl", problems);
  for (const StepNumbers& step : steps.value()) {
    EXPECT_EQ(step.data.at("reshard/bytes"), step.data.at("reshard/lower_bound_bytes"));
    EXPECT_GT(step.data.at("rollout/verified_bytes"), step.data.at("reshard/bytes"));
  }
  EXPECT_EQ(train("refused", 1, sent), 65) << "its rollout shares ranks with its actor";
}

// The plan says who generates, how much of the GPU it gets and that it sleeps; another engine than
// the plan's is told of.
TEST_F(VllmRun, APlanForItsServersStartsThemByItself) {
  const std::string by_server = rollout(
      "vllm.program", "[" + python_ + ", " TESSERA_SOURCE_DIR "/tests/executor/vllm/fake_vllm.py]");
  plan("servers", "rollout.tp=2 rollout.dp=2 rollout.offload=all --engine tessera+vllm");
  const auto ran = [&](const std::string& file, const std::string& more, const std::string& to) {
    const Called called = call(
        "run " + at(file) + " --config grpo-digits --set 'data.train_files=[" +
        at("prompts.jsonl") + "]' --set trainer.total_training_steps=1" + more + " -o " + at(to));
    EXPECT_EQ(called.code, 0) << called.out;
    return called.out;
  };
  const testing::Matcher<std::string> told = testing::HasSubstr("is not for");
  EXPECT_THAT(ran("servers.json", by_server, "servers"), testing::Not(told));
  const std::string log = text_of(folder_ / "servers/vllm-1.log");
  EXPECT_THAT(log, testing::HasSubstr("Started server process"));
  EXPECT_THAT(ran("servers.json", rollout("engine", "tessera"), "own"), told);
  EXPECT_FALSE(fs::exists(folder_ / "own/vllm-0.log"));
  EXPECT_THAT(ran("plan.json", by_vllm(), "other"), told);
}

/// Prompts of the requests that a replica's server had in the given one of two steps, sorted.
std::vector<std::string> requests_of_step(const std::string& log, std::size_t step) {
  std::vector<std::string> lines;
  std::istringstream text(log);
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("prompt [")) lines.push_back(line.substr(7));
  }
  const auto half = static_cast<std::ptrdiff_t>(lines.size() / 2);
  std::vector<std::string> mine(lines.begin() + (step == 0 ? 0 : half),
                                step == 0 ? lines.begin() + half : lines.end());
  std::sort(mine.begin(), mine.end());
  return mine;
}

std::vector<std::string> requests_for(std::span<const TokenPrompt> prompts) {
  std::vector<std::string> requests;
  for (const TokenPrompt& prompt : prompts) {
    std::string tokens;
    for (const std::int32_t token : prompt.tokens) {
      tokens += (tokens.empty() ? "[" : ", ") + std::to_string(token);
    }
    requests.insert(requests.end(), static_cast<std::size_t>(prompt.samples), tokens + "]");
  }
  std::sort(requests.begin(), requests.end());
  return requests;
}

std::vector<TokenPrompt> prompts_of(const Experience& step) {
  std::vector<TokenPrompt> prompts;
  for (const Sequence& s : step.sequences) {
    if (s.sample_index == 0) {
      prompts.push_back({.prompt_index = s.prompt_index, .uid = s.uid, .tokens = s.prompt});
    } else {
      prompts.back().samples += 1;
    }
  }
  return prompts;
}

// The second step has the prompts of the first, dealt by how long their answers were.
TEST_F(VllmRun, PromptsThatWereAnsweredAreDealtByTheirLengths) {
  ::setenv("FAKE_VLLM_LOG_PROMPTS", "1", 1);
  ASSERT_EQ(run("make-data --task reverse --digits 3 --count 32 -o " + at("few.jsonl")), 0);
  ASSERT_EQ(run("run " + at("plan.json") + " --config grpo-digits --set 'data.train_files=[" +
                at("few.jsonl") + "]' --set trainer.total_training_steps=2" + by_vllm() + " -o " +
                at("dealt")),
            0);
  Problems problems;
  const auto steps = read_samples(folder_ / "dealt/samples.jsonl", problems);
  ASSERT_EQ(steps.size(), 2U);
  KnownLengths known;
  for (std::size_t step = 0; step < 2; ++step) {
    std::vector<TokenPrompt> prompts = prompts_of(steps[step]);
    const auto in_order = requests_for(prompts_of_replica(prompts, 2, 0));
    expect_lengths(known, prompts);
    for (int replica = 0; replica < 2; ++replica) {
      const std::string log = text_of(folder_ / ("dealt/vllm-" + std::to_string(replica) + ".log"));
      EXPECT_EQ(requests_of_step(log, step), requests_for(prompts_of_replica(prompts, 2, replica)))
          << step << " " << replica;
    }
    EXPECT_EQ(requests_for(prompts_of_replica(prompts, 2, 0)) == in_order, step == 0);
    remember_lengths(steps[step].sequences, known);
  }
}

TEST_F(VllmRun, SamplesDependOnTheSeedAlone) {
  ASSERT_EQ(train("once", 2, by_vllm()), 0);
  ASSERT_EQ(train("again", 2, by_vllm(rollout("vllm.sleep", "false"))), 0);
  EXPECT_EQ(text_of(folder_ / "once/samples.jsonl"), text_of(folder_ / "again/samples.jsonl"));
  ASSERT_EQ(train("reseeded", 2, by_vllm(rollout("seed", "5"))), 0);
  EXPECT_NE(text_of(folder_ / "once/samples.jsonl"), text_of(folder_ / "reseeded/samples.jsonl"));
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
  ::setenv("FAKE_VLLM_FAULT", "crash:300", 1);  // in the second step
  const Called called = call("run " + at("plan.json") +
                             " --config grpo-digits --set "
                             "'data.train_files=[" +
                             at("prompts.jsonl") + "]'" + by_vllm(rollout("vllm.restarts", "0")) +
                             " --set trainer.total_training_steps=4 -o " + at("crash"));
  EXPECT_EQ(called.code, 69) << called.out;
  EXPECT_NE(called.out.find("replica "), std::string::npos) << called.out;
  EXPECT_NE(called.out.find("of the rollout, step 2, phase gen: vLLM at"), std::string::npos)
      << called.out;
  EXPECT_NE(called.out.find("exit code 3"), std::string::npos) << called.out;
  EXPECT_NE(called.out.find("illegal memory access"), std::string::npos) << called.out;
  expect_servers_ended("crash", 2);
}

TEST_F(VllmRun, StaleWeightsEndTheRunWhereTheyAreVerified) {
  ::setenv("FAKE_VLLM_FAULT", "stale", 1);
  EXPECT_EQ(train("stale", 2, by_vllm() + " --reshard-verify"), 1);
}

TEST_F(VllmRun, WhatVllmCannotHoldOrDoIsRefusedBeforeItStarts) {
  for (const std::string& more :
       {by_vllm(rollout("temperature", "0.5") + rollout("top_k", "4")),
        by_vllm(rollout("vllm.servers", "[\"http://127.0.0.1:8000\"]")),
        by_vllm(rollout("vllm.servers", "[\"http://127.0.0.1:8000\", \"http://127.0.0.1:8001\"]") +
                rollout("vllm.restarts", "1")),
        by_vllm() + " --reshard-incremental", rollout("vllm.enforce_eager", "true")}) {
    EXPECT_EQ(train("refused", 1, more), 65) << more;
    EXPECT_FALSE(fs::exists(folder_ / "refused"));
  }
}

}  // namespace
}  // namespace tessera
