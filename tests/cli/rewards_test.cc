// Runs whose rewards are several functions, Python files and programs: on four CPU ranks, with
// responses that crash and hang them.
#include <gtest/gtest.h>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <sstream>
#include <thread>

#include "simulator/timeline/rank_status.h"
#include "tests/cli/called.h"
#include "tests/cli/programs.h"
#include "tests/cli/running_program.h"
#include "tests/executor/python_oracle.h"

namespace tessera {
namespace {

class RewardRun : public ProgramTest {
 protected:
  static void write(const std::string& name, const std::string& text) {
    std::ofstream(at(name)) << text;
  }
  /// Steps of GRPO with this `reward` map.
  static int train_with(const std::string& name, const std::string& reward, int steps = 2,
                        const std::string& prompts = "prompts.jsonl") {
    write(name + ".yaml", "data: {train_files: [" + at(prompts) + "]}\nreward: " + reward +
                              "\ntrainer: {total_training_steps: " + std::to_string(steps) +
                              ", seed: 3}\n");
    const std::string words = kTessera + " run " + at("plan.json") + " --config " +
                              at(name + ".yaml") + " -o " + at(name) + " >" + at(name + ".out") +
                              " 2>&1";
    const int status = std::system(words.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  static std::vector<double> metric(const std::string& run, const std::string& name) {
    Problems problems;
    const auto steps = read_metrics(folder_ / run / "metrics.jsonl", problems);
    std::vector<double> values;
    for (const StepNumbers& step : steps.value()) {
      const auto found = step.data.find(name);
      if (found != step.data.end()) values.push_back(found->second);
    }
    return values;
  }
};

// verl's rule for the same responses, as a file of its own.
constexpr const char* kFraction =
    "def compute_score(data_source, solution_str, ground_truth, extra_info, scale=1):\n"
    "    assert extra_info['split'] == 'train' and data_source == 'tessera/reverse'\n"
    "    right = sum(a == b for a, b in zip(solution_str, ground_truth))\n"
    "    return {'score': scale * right / len(ground_truth), 'acc': right}\n";

TEST_F(RewardRun, APythonFileTrainsAsTheRuleDoes) {
  write("fraction.py", kFraction);
  ASSERT_EQ(train_with("rule", "{function: fraction}"), 0) << text_of(at("rule.out"));
  ASSERT_EQ(train_with("file", "{custom_reward_function: {path: " + at("fraction.py") + "}}"), 0)
      << text_of(at("file.out"));
  EXPECT_EQ(rewards("rule").size(), 2u);
  EXPECT_EQ(rewards("rule"), rewards("file"));
  EXPECT_EQ(metric("rule", "actor/pg_loss"), metric("file", "actor/pg_loss"));
  EXPECT_EQ(metric("file", "reward/failed"), (std::vector<double>{0, 0}));
  // Scores begin as responses end: by the second step the processes are there.
  const std::vector<double> early = metric("file", "reward/overlapped");
  ASSERT_EQ(early.size(), 2u);
  EXPECT_GT(early[1], 0);
  EXPECT_EQ(metric("file", "reward/exposed_s").size(), 2u);
  EXPECT_TRUE(metric("rule", "reward/overlapped").empty());
}

/// As verl's replay_buffer.py judges groups by reward_extra_info["acc"]: here none has a signal,
/// and their scores differ.
TEST_F(RewardRun, GroupsAreJudgedByTheFunctionsOwnAccuracy) {
  write("blind.py",
        "def compute_score(data_source, solution_str, ground_truth, extra_info):\n"
        "    right = sum(a == b for a, b in zip(solution_str, ground_truth))\n"
        "    return {'score': right + len(set(solution_str)) / 16, 'acc': 0.0}\n");
  const auto words = [](const std::string& name, const std::string& metric) {
    write(name + ".yaml",
          "data: {train_files: [" + at("prompts.jsonl") +
              "]}\nreward: {custom_reward_function: {path: " + at("blind.py") +
              "}}\nalgorithm: {filter_groups: {enable: true, metric: " + metric +
              ", max_num_gen_batches: 2}}\ntrainer: {total_training_steps: 1, seed: 3}\n");
    return call("run " + at("plan.json") + " --config " + at(name + ".yaml") + " -o " + at(name));
  };
  const Called acc = words("acc", "acc");
  EXPECT_EQ(acc.code, 1) << acc.out;
  EXPECT_NE(acc.out.find("0 groups with different scores after 2 generations"), std::string::npos)
      << acc.out;
  const Called score = words("score", "score");
  EXPECT_EQ(score.code, 0) << score.out;
}

/// Kubernetes and Slurm kill half a minute after they have asked.
TEST_F(RewardRun, ARunThatIsStoppedWaitsForNoReward) {
  using namespace std::chrono_literals;
  using Clock = std::chrono::steady_clock;
  write("slow.py",
        "import time\n"
        "def compute_score(data_source, solution_str, ground_truth, extra_info):\n"
        "    if extra_info['index'] % 4 == 3: time.sleep(1000)\n"
        "    return 0.5\n");
  write("slow.yaml", "data: {train_files: [" + at("prompts.jsonl") +
                         "]}\nreward: {custom_reward_function: {path: " + at("slow.py") +
                         "}, workers: {timeout_s: 600}}\ntrainer: {total_training_steps: 2}\n");
  RunningProgram program(
      {kTessera, "run", at("plan.json"), "--config", at("slow.yaml"), "-o", at("slow")},
      at("slow.out"));
  const auto waits = [] {
    const auto rank = read_rank_status(folder_ / "slow/ranks/0");
    return rank && rank->phase == "reward";
  };
  const Clock::time_point until = Clock::now() + 120s;
  while (!waits() && !program.ended() && Clock::now() < until) std::this_thread::sleep_for(10ms);
  std::this_thread::sleep_for(1s);
  ASSERT_TRUE(waits()) << program.messages();
  ASSERT_EQ(::kill(program.pid(), SIGTERM), 0);
  EXPECT_EQ(program.wait(20s), 130) << program.messages();
  EXPECT_TRUE(fs::exists(folder_ / "slow/hf/model.safetensors")) << program.messages();
}

/// Both outputs, in a sandbox where there is one, and also what comes with the last answer.
TEST_F(RewardRun, WhatAFunctionPrintsIsKept) {
  write("talks.py",
        "import sys\n"
        "def compute_score(data_source, solution_str, ground_truth, extra_info):\n"
        "    print('out of', extra_info['index'])\n"
        "    sys.stderr.write(f\"err of {extra_info['index']}\\n\")\n"
        "    return 0.5\n");
  for (const std::string sandbox : {"automatic", "none"}) {
    const std::string name = "talks-" + sandbox;
    ASSERT_EQ(train_with(name,
                         "{custom_reward_function: {path: " + at("talks.py") +
                             "}, workers: {sandbox: " + sandbox + "}}",
                         1),
              0)
        << text_of(at(name + ".out"));
    std::istringstream log(text_of(folder_ / name / "reward.log"));
    std::map<std::string, int> words;
    for (std::string line; std::getline(log, line);) ++words[line.substr(0, 3)];
    EXPECT_EQ(words["out"], words["err"]);
    EXPECT_EQ(words["out"], std::ranges::count(text_of(folder_ / name / "samples.jsonl"), '\n'));
  }
}

TEST_F(RewardRun, AParquetFileTrainsAsTheSameLinesDo) {
  const std::string python = python_with("pyarrow");
  if (python.empty()) GTEST_SKIP() << "no Python with pyarrow";
  write("convert.py",
        "import sys, pyarrow.json as j, pyarrow.parquet as p\n"
        "p.write_table(j.read_json(sys.argv[1]), sys.argv[2])\n");
  ASSERT_EQ(run_python(python,
                       at("convert.py") + " " + at("prompts.jsonl") + " " + at("prompts.parquet")),
            0);
  ASSERT_EQ(train_with("lines", "{function: fraction}"), 0) << text_of(at("lines.out"));
  ASSERT_EQ(train_with("rows", "{function: fraction}", 2, "prompts.parquet"), 0)
      << text_of(at("rows.out"));
  EXPECT_EQ(rewards("lines").size(), 2u);
  EXPECT_EQ(rewards("lines"), rewards("rows"));
  EXPECT_EQ(metric("lines", "actor/pg_loss"), metric("rows", "actor/pg_loss"));
}

TEST_F(RewardRun, SeveralRewardsAreAddedUpByTheirWeights) {
  write("fraction.py", kFraction);
  ASSERT_EQ(train_with("several",
                       "{functions: [{name: fraction, weight: 2}, {name: twice, weight: "
                       "-0.5, path: " +
                           at("fraction.py") + ", reward_kwargs: {scale: 3}}]}"),
            0)
      << text_of(at("several.out"));
  const std::vector<double> score = rewards("several"),
                            rule = metric("several", "reward/fraction/mean"),
                            file = metric("several", "reward/twice/mean");
  ASSERT_EQ(score.size(), 2u);
  ASSERT_EQ(rule.size(), 2u);
  for (std::size_t i = 0; i < score.size(); ++i) {
    EXPECT_NEAR(file[i], 3 * rule[i], 1e-9);
    EXPECT_NEAR(score[i], 2 * rule[i] - 0.5 * file[i], 1e-6);
  }
  EXPECT_GT(rule[0], 0);
}

TEST_F(RewardRun, ResponsesThatBreakTheProgramCostThemselvesAlone) {
  write("fragile.py",
        "import os, time\n"
        "def compute_score(data_source, solution_str, ground_truth, extra_info):\n"
        "    if extra_info['index'] % 16 == 1: os.kill(os.getpid(), 9)\n"
        "    if extra_info['index'] == 7: time.sleep(1000)\n"
        "    if extra_info['index'] % 16 == 3: os.fork(); time.sleep(0)\n"
        "    return 1\n");
  ASSERT_EQ(train_with("fragile", "{custom_reward_function: {path: " + at("fragile.py") +
                                      "}, workers: {timeout_s: 2}}"),
            0)
      << text_of(at("fragile.out"));
  const std::vector<double> failed = metric("fragile", "reward/failed"), score = rewards("fragile");
  ASSERT_EQ(failed.size(), 2u);
  EXPECT_GT(failed[0] + failed[1], 0);
  for (std::size_t i = 0; i < score.size(); ++i) EXPECT_GT(score[i], 0.5);
  EXPECT_NE(text_of(at("fragile.out")).find("responses have no score"), std::string::npos)
      << text_of(at("fragile.out"));
}

TEST_F(RewardRun, AProgramThatNeverAnswersEndsTheRun) {
  write("mute.py",
        "def compute_score(data_source, solution_str, ground_truth, extra_info):\n"
        "    raise RuntimeError('no score from me')\n");
  EXPECT_EQ(train_with("mute", "{custom_reward_function: {path: " + at("mute.py") + "}}"), 65);
  EXPECT_NE(text_of(at("mute.out")).find("no score from me"), std::string::npos)
      << text_of(at("mute.out"));
}

// Processes that hold memory take a while to end: the ranks without any do not end the run first.
TEST_F(RewardRun, AProgramThatHoldsMuchMemoryAndNeverAnswersHasItsWords) {
  write("heavy.py",
        "held = bytearray(b'x') * (1 << 28)\n"
        "def compute_score(data_source, solution_str, ground_truth, extra_info):\n"
        "    raise RuntimeError('no score from this heap')\n");
  EXPECT_EQ(train_with("heavy",
                       "{custom_reward_function: {path: " + at("heavy.py") + "}, num_workers: 1}"),
            65);
  const std::string told = text_of(at("heavy.out"));
  const std::string words = "(heavy: heavy.py:3: RuntimeError: no score from this heap), and none";
  const auto first = told.find(words);
  EXPECT_NE(first, std::string::npos) << told;
  EXPECT_EQ(told.find(words, first + 1), std::string::npos) << "told twice";
  EXPECT_NE(told.find("heavy.py\", line 3, in compute_score"), std::string::npos) << told;
}

/// Nothing has been started and nothing is left where a file cannot be loaded or called.
TEST_F(RewardRun, AFileThatCannotScoreIsRefusedBeforeRanksStart) {
  const auto refused = [](const std::string& name, const std::string& path) {
    EXPECT_EQ(train_with(name, "{custom_reward_function: {path: " + path + "}}"), 65);
    EXPECT_FALSE(fs::exists(at(name))) << "told before the run starts";
    const std::string said = text_of(at(name + ".out"));
    EXPECT_EQ(said.find("CPU ranks"), std::string::npos) << said;
    return said;
  };
  write("syntax.py", "\ndef compute_score(:\n");
  EXPECT_NE(refused("syntax", at("syntax.py")).find(at("syntax.py") + ":2: found SyntaxError"),
            std::string::npos);
  write("import.py", "import no_such_module\n");
  EXPECT_NE(refused("import", at("import.py")).find(at("import.py") + ":1: found ModuleNotFound"),
            std::string::npos);
  write("named.py", "def score(a):\n    return 1\n");
  EXPECT_NE(refused("named", at("named.py")).find("found no function compute_score: it has score"),
            std::string::npos);
  write("few.py", "\n\ndef compute_score(solution_str):\n    return 1\n");
  EXPECT_NE(refused("few", at("few.py")).find(at("few.py") + ":3: found compute_score("),
            std::string::npos);
  EXPECT_NE(refused("absent", "/no/such/file.py")
                .find(at("absent.yaml") + ":2:41 (reward.custom_reward_function.path): found "
                                          "'/no/such/file.py', no such file"),
            std::string::npos);
}

/// As torchrun, srun and mpirun start it, without `tessera run`.
TEST_F(RewardRun, ARankThatABareLauncherStartsLooksFirst) {
  write("import.py", "import no_such_module\n");
  write("bare.yaml", "data: {train_files: [" + at("prompts.jsonl") +
                         "]}\nreward: {custom_reward_function: {path: " + at("import.py") +
                         "}}\ntrainer: {total_training_steps: 1}\n");
  const int status =
      std::system((std::string(TESSERA_BINARY_DIR "/executor/tessera-run train ") +
                   at("plan.json") + " --config " + at("bare.yaml") + " --device cpu -o " +
                   at("bare") + " >" + at("bare.out") + " 2>&1")
                      .c_str());
  EXPECT_EQ(WEXITSTATUS(status), 65);
  EXPECT_NE(text_of(at("bare.out")).find(at("import.py") + ":1: found"), std::string::npos)
      << text_of(at("bare.out"));
  EXPECT_FALSE(fs::exists(at("bare")));
}

/// A run file is called as its user calls it, and a prompt by its own file and line.
TEST_F(RewardRun, RefusalsNameTheUsersFilesAndLines) {
  write("long.jsonl", text_of(at("prompts.jsonl")) +
                          R"({"data_source": "s", "prompt": "123456789012345=", )"
                          R"("reward_model": {"ground_truth": "1"}})"
                          "\n");
  EXPECT_EQ(train_with("long", "{function: fraction}", 1, "long.jsonl"), 65);
  const std::string prompts = text_of(at("prompts.jsonl"));
  const auto lines = std::count(prompts.begin(), prompts.end(), '\n');
  EXPECT_NE(
      text_of(at("long.out"))
          .find(at("long.jsonl") + ":" + std::to_string(lines + 1) + " (/prompt): found 1 of"),
      std::string::npos)
      << text_of(at("long.out"));
  EXPECT_EQ(train_with("source", "{function: by_data_source}"), 65);
  EXPECT_NE(
      text_of(at("source.out")).find(at("source.yaml") + ":2:20 (reward.function): found by_data"),
      std::string::npos)
      << text_of(at("source.out"));
}

/// What a key names and is not there is told with the key, and its line where that is the user's.
TEST_F(RewardRun, RefusalsNameTheKeyThatNamesAFile) {
  EXPECT_EQ(train_with("data", "{function: fraction}", 1, "absent.parquet"), 65);
  EXPECT_NE(text_of(at("data.out"))
                .find(at("data.yaml") + ":1:21 (data.train_files): found '" + at("absent.parquet") +
                      "', no such file"),
            std::string::npos)
      << text_of(at("data.out"));
  write("rules.yaml",
        "data: {train_files: [" + at("prompts.jsonl") + "]}\ntrainer: {total_training_steps: 1}\n");
  const Called rules = call("run " + at("plan.json") + " --config " + at("rules.yaml") +
                            " --set trainer.rules=defualt -o " + at("rules"));
  EXPECT_EQ(rules.code, 65);
  EXPECT_NE(rules.out.find("--set trainer.rules=defualt: found 'defualt', no such file or preset"),
            std::string::npos)
      << rules.out;
  write("places.yaml", "# one\n\ndata: {train_files: [" + at("prompts.jsonl") +
                           "]}\n\ntrainer:\n  # two\n  total_training_steps: some\n");
  const Called lines = call("run " + at("plan.json") + " --config " + at("places.yaml") +
                            " --set data.seed=3 -o " + at("places"));
  EXPECT_EQ(lines.code, 65);
  EXPECT_NE(
      lines.out.find(at("places.yaml") + ":7:25 (trainer.total_training_steps): found \"some\""),
      std::string::npos)
      << lines.out;
  EXPECT_NE(rules.out.find("did you mean 'default'?"), std::string::npos) << rules.out;
  const Called word = call("run " + at("plan.json") + " --config " + at("rules.yaml") +
                           " --set 'data.train_files=[a' -o " + at("word"));
  EXPECT_EQ(word.code, 64);
  EXPECT_NE(word.out.find("--set data.train_files=[a: found '[a', a list without its ]"),
            std::string::npos)
      << word.out;
}

}  // namespace
}  // namespace tessera
