// Outside reward programs: what they are given, how they work side by side, what a sandbox keeps
// from them.
#include "executor/rewards/reward_workers.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

#include "cost_models/documents/problem.h"
#include "executor/rewards/reward_functions.h"
#include "tests/executor/rewards/python_reward.h"

namespace tessera {
namespace {

TEST(RewardWorkers, APythonFileIsCalledAsVerlCallsIt) {
  PythonReward reward(
      "import json\n"
      "def compute_score(data_source, solution_str, ground_truth, extra_info, bonus=0):\n"
      "    print('what a file prints is no answer')\n"
      "    assert data_source == 's' and ground_truth == {'a': [1]} and extra_info['index'] == 3\n"
      "    kind = solution_str[:1]\n"
      "    score = len(solution_str) + bonus\n"
      "    if kind == 'd': return {'score': score, 'acc': True}\n"
      "    if kind == 'l': return [score, 'more']\n"
      "    if kind == 'b': return score > 0\n"
      "    return score\n");
  RewardWorkers pool(python_reward("python3", reward.folder.path / "reward.py", "compute_score",
                                   "{\"bonus\":0.5}"),
                     reward.limits, 2);
  std::vector<RewardRequest> requests;
  for (const char* response : {"d2", "l23", "b", "\u4f60\"\n\\", "\xff"}) {
    requests.push_back(request(response, "{\"a\":[1]}"));
  }
  const std::vector<double> expected = {2.5, 3.5, 1, 4.5, 1.5};
  for (int round = 0; round < 2; ++round) {  // the processes stay
    const auto answers = pool.score(requests);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(answers[i].score.value_or(-1), expected[i]) << answers[i].failure;
    }
  }
}

TEST(RewardWorkers, AnAnswerMayCarryVerlsAccuracyAndPrediction) {
  PythonReward reward(
      "def compute_score(data_source, solution_str, ground_truth, extra_info):\n"
      "    if solution_str == 'number': return 0.5\n"
      "    return {'score': 1, 'acc': solution_str == 'right', 'pred': len(solution_str)}\n");
  const auto answers = reward.score({"right", "number", "wrong!"});
  EXPECT_EQ(answers[0].detail.accuracy, 1.0);
  EXPECT_EQ(answers[0].detail.answer, "5");
  EXPECT_FALSE(answers[1].detail.accuracy);
  EXPECT_TRUE(answers[1].detail.plain_number);
  EXPECT_FALSE(answers[1].detail.answer);
  EXPECT_EQ(answers[2].detail.accuracy, 0.0);
  EXPECT_EQ(answers[2].detail.answer, "6");
}

/// As verl's reward managers pass every key of the map on, of which validations report the numbers.
TEST(RewardWorkers, AnAnswerMayCarryOtherNumbers) {
  PythonReward reward(
      "class Scalar:\n"
      "    def __float__(self): return 0.25\n"
      "def compute_score(data_source, solution_str, ground_truth, extra_info):\n"
      "    return {'score': 2, 'acc': Scalar(), 'format': True, 'length': 7, 'text': '5', 'none': "
      "None,\n"
      "            'list': [1], 'bad': float('inf'), 'a b': Scalar()}\n");
  const auto answers = reward.score({"any"});
  EXPECT_EQ(answers[0].detail.accuracy, 0.25);
  EXPECT_EQ(
      answers[0].detail.more,
      (std::map<std::string, double>{{"score", 2}, {"format", 1}, {"length", 7}, {"a b", 0.25}}));
  EXPECT_EQ(answers[0].left_out, "bad: found Infinity, expected a finite number: left out");
}

/// verl's own managers were given the same results (scripts/make_validation_vectors.py).
TEST(RewardWorkers, TheAccuracyOfAResultIsThatOfVerlsManagers) {
  PythonReward reward(
      "def compute_score(data_source, solution_str, ground_truth, extra_info):\n"
      "    return ground_truth\n");
  std::ifstream in(TESSERA_SOURCE_DIR "/tests/executor/rl/verl_validation.json");
  const auto said = nlohmann::json::parse(in).at("accuracies");
  std::vector<RewardRequest> requests;
  for (const auto& one : said) requests.push_back(request("any", one.at("result").dump()));
  RewardWorkers pool(
      python_reward("python3", reward.folder.path / "reward.py", "compute_score", "{}"),
      reward.limits, 2);
  const auto answers = pool.score(requests);
  ASSERT_GE(answers.size(), 35u);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    ASSERT_TRUE(answers[i].score) << answers[i].failure;
    std::optional<double> wanted;
    if (!said[i].at("acc").is_null()) wanted = said[i].at("acc").get<double>();
    EXPECT_EQ(accuracy_of(*answers[i].score, answers[i].detail), wanted) << said[i];
  }
}

/// A number is whatever Python makes a float of, as torch's assignment in verl does; a text is
/// none, were it all digits.
TEST(RewardWorkers, AScoreIsANumberOfAnyKindAndNoText) {
  PythonReward reward(
      "class Scalar:\n"  // as numpy's: an index, which it refuses, and a value
      "    def __getitem__(self, at): raise IndexError('invalid index to scalar variable')\n"
      "    def __float__(self): return 0.25\n"
      "def compute_score(data_source, solution_str, ground_truth, extra_info):\n"
      "    return {'scalar': Scalar(), 'text': '10', 'in': {'score': '10'}}[solution_str]\n");
  const auto answers = reward.score({"scalar", "text", "in"});
  EXPECT_EQ(answers[0].score, 0.25) << answers[0].failure;
  EXPECT_FALSE(answers[1].score);
  EXPECT_NE(answers[1].failure.find("not the text '10'"), std::string::npos) << answers[1].failure;
  EXPECT_FALSE(answers[2].score);
}

/// Submitted one by one while the caller does other things: nobody waits until finish().
TEST(RewardWorkers, RequestsAreWorkedOnBeforeAnybodyWaits) {
  PythonReward reward(
      "import time\n"
      "def compute_score(data_source, solution_str, ground_truth, extra_info):\n"
      "    time.sleep(0.05)\n"
      "    return float(solution_str)\n");
  reward.limits.timeout_s = 20;
  RewardWorkers pool(
      python_reward("python3", reward.folder.path / "reward.py", "compute_score", "{}"),
      reward.limits, 2);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 6; ++i) {
      pool.submit(request(std::to_string(i)));
      pool.poll();
    }
    const Clock::time_point until = Clock::now() + std::chrono::seconds(30);
    while (pool.answered() < 6 && Clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      pool.poll();
    }
    EXPECT_EQ(pool.answered(), 6u) << "polling alone brings all answers";
    const auto answers = pool.finish();
    ASSERT_EQ(answers.size(), 6u);
    for (std::size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(answers[i].score, static_cast<double>(i)) << answers[i].failure;
    }
    EXPECT_EQ(pool.answered(), 0u);
  }
}

TEST(RewardWorkers, LongResponsesReachAProcessThatReadsSlowly) {
  PythonReward reward(
      "import time\n"
      "def compute_score(data_source, solution_str, ground_truth, extra_info):\n"
      "    time.sleep(0.05)\n"
      "    return len(solution_str)\n");
  const std::string text(3'000'000, 'x');
  for (const RewardAnswer& answer : reward.score({text, text, text, text})) {
    EXPECT_EQ(answer.score.value_or(-1), 3'000'000) << answer.failure;
  }
}

TEST(RewardWorkers, AProgramThatCannotStartCostsResponsesAndFewStarts) {
  RewardWorkers none({"/nonexistent/program"}, {.sandbox = Sandbox::none}, 2);
  for (const RewardAnswer& answer : none.score(std::vector<RewardRequest>(10, request("x")))) {
    EXPECT_NE(answer.failure.find("No such file"), std::string::npos) << answer.failure;
  }
  TemporaryFolder folder;
  const std::string starts = (folder.path / "starts").string();
  PythonReward reward("open('" + starts + "', 'a').write('s')\nimport no_such_module\n");
  for (const RewardAnswer& answer : reward.score({"a", "b"})) {
    EXPECT_NE(answer.failure.find("no_such_module"), std::string::npos) << answer.failure;
  }
  EXPECT_FALSE(reward.score(std::vector<std::string>(2000, "a")).back().failure.empty());
  EXPECT_LT(std::filesystem::file_size(starts), 100U)
      << "of a broken program not every response is tried";
}

TEST(RewardWorkers, SeveralProcessesWorkAtOnce) {
  PythonReward reward(
      "import time\n"
      "def compute_score(data_source, solution_str, ground_truth, extra_info):\n"
      "    time.sleep(0.5)\n"
      "    return 1\n");
  reward.limits.timeout_s = 30;
  const auto start = Clock::now();
  const auto answers = reward.score(std::vector<std::string>(16, "x"), 8);
  EXPECT_LT(seconds_since(start), 7) << "16 times 0.5 s one after the other take 8 s";
  for (const RewardAnswer& answer : answers) EXPECT_TRUE(answer.score) << answer.failure;
}

TEST(RewardWorkers, ASandboxHasNoNetworkAndNoWritableFiles) {
  Problems problems;
  bool boxed = false;
  in_sandbox({"true"}, Sandbox::automatic, boxed, problems);
  EXPECT_TRUE(problems.empty());
  if (!boxed) {
    EXPECT_FALSE(in_sandbox({"true"}, Sandbox::bubblewrap, boxed, problems));
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_NE(to_string(problems[0]).find("apt install bubblewrap"), std::string::npos);
    GTEST_SKIP() << "no bubblewrap here";
  }
  PythonReward reward(
      "import os, socket\n"
      "def compute_score(data_source, solution_str, ground_truth, extra_info):\n"
      "    if solution_str == 'net':\n"
      "        return len(os.listdir('/sys/class/net')) if not os.path.exists('/proc/net/dev') "
      "else len(open('/proc/net/dev').readlines()) - 2\n"
      "    open(os.path.join(os.path.dirname(__file__), 'written'), 'w')\n"
      "    return 1\n");
  const RewardFunction function{.name = "f", .file = reward.folder.path / "reward.py"};
  RewardPrograms programs{.workers = 1, .limits = reward.limits};
  programs.limits.sandbox = Sandbox::bubblewrap;
  const auto pool = make_reward_scorer(function, programs, 0, 1, problems);
  ASSERT_TRUE(pool);
  const auto answers = pool->score(std::vector<RewardRequest>{request("net"), request("write")});
  EXPECT_EQ(answers[0].score.value_or(-1), 1) << "the loopback alone; " << answers[0].failure;
  EXPECT_NE(answers[1].failure.find("Error"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(reward.at("written")));
}

TEST(RewardWorkers, EverySequenceHasARankWithAProcess) {
  for (const int workers : {1, 3, 8}) {
    for (const int ranks : {1, 2, 4, 16}) {
      int all = 0;
      for (int rank = 0; rank < ranks; ++rank) all += reward_workers_of(rank, workers, ranks);
      EXPECT_EQ(all, workers);
      for (std::size_t i = 0; i < 40; ++i) {
        EXPECT_GT(reward_workers_of(rank_of_reward(i, workers, ranks), workers, ranks), 0);
      }
    }
  }
}

}  // namespace
}  // namespace tessera
