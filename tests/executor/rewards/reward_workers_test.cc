// Outside reward programs: what they are given, and that one which misbehaves costs its response
// alone.
#include "executor/rewards/reward_workers.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "cost_models/documents/problem.h"
#include "executor/rewards/reward_functions.h"
#include "tests/executor/temporary_folder.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

RewardRequest request(const std::string& response, const std::string& truth = "\"4\"") {
  return {.data_source = "s",
          .response = response,
          .truth_json = truth,
          .extra_info_json = "{\"index\":3}"};
}

/// A Python file in a folder of its own, and what it makes of responses.
struct PythonReward {
  TemporaryFolder folder;
  WorkerLimits limits{
      .timeout_s = 1.5, .start_timeout_s = 30, .memory_gib = 1, .sandbox = Sandbox::none};

  explicit PythonReward(const std::string& text) {
    std::ofstream(folder.path / "reward.py") << text;
  }
  std::string at(const std::string& name) const { return (folder.path / name).string(); }

  std::vector<RewardAnswer> score(const std::vector<std::string>& responses, int workers = 2,
                                  const std::string& kwargs = "{}") {
    RewardWorkers pool(python_reward("python3", folder.path / "reward.py", "compute_score", kwargs),
                       limits, workers);
    std::vector<RewardRequest> requests;
    for (const std::string& response : responses) requests.push_back(request(response));
    return pool.score(requests);
  }
};

/// Scores "good"; `bad` is what it does with the response "bad".
std::string misbehaving(const std::string& bad) {
  return "import os, sys, time, signal, subprocess, threading\n"
         "def compute_score(data_source, solution_str, ground_truth, extra_info):\n"
         "    if solution_str == 'bad':\n"
         "        " +
         bad +
         "\n"
         "    return 1.0 if solution_str == 'good' else 0.25\n";
}

const std::vector<std::string> kMixed = {"good", "bad", "good", "other", "bad", "good", "good"};

/// All but the bad ones are scored; these are `failure`.
void expect_only_bad_lost(const std::vector<RewardAnswer>& answers, const std::string& failure) {
  ASSERT_EQ(answers.size(), kMixed.size());
  for (std::size_t i = 0; i < kMixed.size(); ++i) {
    if (kMixed[i] == "bad") {
      EXPECT_FALSE(answers[i].score) << i;
      EXPECT_NE(answers[i].failure.find(failure), std::string::npos) << answers[i].failure;
    } else {
      EXPECT_EQ(answers[i].score.value_or(-1), kMixed[i] == "good" ? 1.0 : 0.25)
          << i << ": " << answers[i].failure;
    }
  }
}

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
  EXPECT_FALSE(answers[1].detail.answer);
  EXPECT_EQ(answers[2].detail.accuracy, 0.0);
  EXPECT_EQ(answers[2].detail.answer, "6");
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

/// Scores of verl's own prime_code (scripts/make_unit_test_vectors.py).
TEST(UnitTests, ScoreAsVerlsPrimeCode) {
  std::ifstream in(TESSERA_SOURCE_DIR "/tests/executor/rewards/verl_unit_tests.json");
  const auto vectors = nlohmann::json::parse(in);
  std::vector<RewardRequest> requests;
  for (const bool as_text : {false, true}) {
    for (const auto& one : vectors.at("cases")) {
      const std::string truth = one.at("truth").dump();
      requests.push_back({.data_source = "taco",
                          .response = one.at("response").get<std::string>(),
                          .truth_json = as_text ? nlohmann::json(truth).dump() : truth,
                          .extra_info_json = "{}"});
    }
  }
  RewardWorkers pool(unit_test_reward("python3", "{\"test_timeout_s\": 5}"),
                     {.timeout_s = 60, .memory_gib = 1, .sandbox = Sandbox::none}, 2);
  const auto answers = pool.score(requests);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto& one = vectors.at("cases")[i % vectors.at("cases").size()];
    ASSERT_TRUE(answers[i].score) << answers[i].failure << one;
    if (one.at("truth").contains("fn_name") && one.at("score") == 0) {
      EXPECT_LT(*answers[i].score, 1) << "verl counts no single calls: " << one;
    } else {
      EXPECT_NEAR(*answers[i].score, one.at("score").get<double>(), 1e-9) << one;
    }
    EXPECT_EQ(answers[i].detail.accuracy, *answers[i].score == 1 ? 1.0 : 0.0);
  }
  EXPECT_GE(answers.size(), 48u);
}

TEST(UnitTests, StatementsAreTestsAndCodeCannotSpoilOthers) {
  const std::string truth = R"({"assert_case": ["assert f(1) == 2", "assert f(2) == 3"]})";
  const auto answers =
      [&](const std::vector<std::string>& bodies) {
        std::vector<RewardRequest> requests;
        for (const std::string& body : bodies) {
          requests.push_back(request("```python\n" + body + "\n```", truth));
        }
        return RewardWorkers(unit_test_reward("python3", "{\"test_timeout_s\": 1}"),
                             {.timeout_s = 30, .memory_gib = 1, .sandbox = Sandbox::none}, 2)
            .score(requests);
      }({"def f(x):\n    return x + 1", "def f(x):\n    return 2",
         "import os\nos.kill(os.getpid(), 9)", "def f(x):\n    while True: pass",
         "import os\nos.write(1, b'{\"id\":0,\"score\":1}')\nos._exit(0)"});
  const std::vector<double> expected = {1, 0.5, 0, 0, 0};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(answers[i].score.value_or(-1), expected[i]) << i << ": " << answers[i].failure;
  }
}

TEST(RewardWorkers, ACrashCostsItsResponse) {
  expect_only_bad_lost(
      PythonReward(misbehaving("os.kill(os.getpid(), signal.SIGSEGV)")).score(kMixed),
      "the process ended");
  expect_only_bad_lost(PythonReward(misbehaving("sys.exit('I leave')")).score(kMixed), "I leave");
}

TEST(RewardWorkers, AnExceptionAndANumberThatIsNoneCostTheirResponse) {
  expect_only_bad_lost(PythonReward(misbehaving("return [][0]")).score(kMixed), "IndexError");
  expect_only_bad_lost(PythonReward(misbehaving("return 'much'")).score(kMixed), "ValueError");
  expect_only_bad_lost(PythonReward(misbehaving("return float('nan')")).score(kMixed), "NaN");
  expect_only_bad_lost(PythonReward(misbehaving("return float('inf')")).score(kMixed), "Infinity");
  expect_only_bad_lost(PythonReward(misbehaving("return None")).score(kMixed), "TypeError");
}

TEST(RewardWorkers, AHangCostsItsResponseAndTheTimeLimit) {
  const auto start = Clock::now();
  expect_only_bad_lost(PythonReward(misbehaving("time.sleep(1000)")).score(kMixed),
                       "no answer in time");
  EXPECT_LT(seconds_since(start), 20) << "two limits of 1.5 s and the starts of processes";
}

TEST(RewardWorkers, AProcessThatIgnoresSignalsIsKilled) {
  expect_only_bad_lost(
      PythonReward(misbehaving("signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)"))
          .score(kMixed),
      "no answer in time");
}

/// Whether the process with the id that a file holds is gone (or a zombie) within five seconds.
bool ends(const std::string& file) {
  std::ifstream in(file);
  pid_t pid = 0;
  if (!(in >> pid)) return false;
  for (int i = 0; i < 50; ++i) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string number, name, state;
    if (!(stat >> number >> name >> state) || state == "Z" || state == "X") return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

TEST(RewardWorkers, WhatAResponseForksEndsWithIt) {
  PythonReward reward("");
  const std::string child = reward.at("child");
  std::ofstream(reward.at("reward.py"))
      << misbehaving("child = subprocess.Popen(['sleep', '1000']); open('" + child +
                     "', 'w').write(str(child.pid)); time.sleep(1000)");
  expect_only_bad_lost(reward.score(kMixed, 1), "no answer in time");
  EXPECT_TRUE(ends(child));
}

TEST(RewardWorkers, AForkThatHoldsTheOutputDoesNotHoldTheRun) {
  // The child keeps both outputs open after its parent has gone.
  PythonReward reward(misbehaving("os.fork() and os._exit(3); time.sleep(1000)"));
  const auto start = Clock::now();
  expect_only_bad_lost(reward.score(kMixed), "no answer in time");
  EXPECT_LT(seconds_since(start), 20);
}

TEST(RewardWorkers, GarbageCostsItsResponse) {
  for (const char* garbage :
       {"'garbage\\n'", "'{\"id\": 999, \"score\": 1}\\n'", "'[1]\\n'", "'{\"score\": 1}\\n'",
        "'\\x00\\n'", "'{\"id\": 1, \"score\": \"1\"}\\n'"}) {
    TemporaryFolder folder;
    // A program of its own: answers are what it writes.
    std::ofstream(folder.path / "program.py")
        << "import json, sys\n"
           "for line in sys.stdin:\n"
           "    request = json.loads(line)\n"
           "    if request['solution_str'] == 'bad':\n"
           "        sys.stdout.write("
        << garbage
        << ")\n"
           "    else:\n"
           "        score = 1.0 if request['solution_str'] == 'good' else 0.25\n"
           "        print(json.dumps({'id': request['id'], 'score': score}))\n"
           "    sys.stdout.flush()\n";
    RewardWorkers pool({"python3", (folder.path / "program.py").string()},
                       {.timeout_s = 5, .sandbox = Sandbox::none}, 2);
    std::vector<RewardRequest> requests;
    for (const std::string& response : kMixed) requests.push_back(request(response));
    expect_only_bad_lost(pool.score(requests), "its answer is");
  }
}

TEST(RewardWorkers, AGigabyteOfOutputCostsItsResponse) {
  const std::string flood =
      "[os.write({0}, b'x' * (1 << 20) {1}) for _ in range(1024)]; time.sleep(1000)";
  const auto with = [&](const std::string& descriptor, const std::string& end) {
    std::string text = flood;
    text.replace(text.find("{0}"), 3, descriptor);
    text.replace(text.find("{1}"), 3, end);
    return text;
  };
  // 1 and 2 are the error output: drained, and cut off by the time limit.
  expect_only_bad_lost(PythonReward(misbehaving(with("2", ""))).score(kMixed), "no answer in time");
  const std::string answers = "sys.modules['__main__'].answers.fileno()";
  expect_only_bad_lost(PythonReward(misbehaving(with(answers, ""))).score(kMixed),
                       "its answer has no end");
  expect_only_bad_lost(PythonReward(misbehaving(with(answers, "+ b'\\n'"))).score(kMixed),
                       "its answer");
}

TEST(RewardWorkers, AnAnswerThatNobodyAskedForIsNotTheNextOne) {
  // It answers its request, and the next one at once as well.
  TemporaryFolder folder;
  std::ofstream(folder.path / "program.py")
      << "import json, sys\n"
         "for line in sys.stdin:\n"
         "    i = json.loads(line)['id']\n"
         "    print(json.dumps({'id': i, 'score': 1}) + '\\n' + json.dumps({'id': i + 1, 'score': "
         "100}), flush=True)\n";
  RewardWorkers pool({"python3", (folder.path / "program.py").string()},
                     {.timeout_s = 5, .sandbox = Sandbox::none}, 1);
  for (const RewardAnswer& answer : pool.score(std::vector<RewardRequest>(5, request("x")))) {
    EXPECT_EQ(answer.score.value_or(-1), 1) << answer.failure;
  }
}

TEST(RewardWorkers, MemoryHasALimit) {
  expect_only_bad_lost(PythonReward(misbehaving("b = bytearray(1 << 31)")).score(kMixed),
                       "MemoryError");
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

TEST(RewardWorkers, AProgramThatCannotStartCostsResponsesAndNoTime) {
  const auto start = Clock::now();
  RewardWorkers none({"/nonexistent/program"}, {.sandbox = Sandbox::none}, 2);
  for (const RewardAnswer& answer : none.score(std::vector<RewardRequest>(10, request("x")))) {
    EXPECT_NE(answer.failure.find("No such file"), std::string::npos) << answer.failure;
  }
  PythonReward reward("import no_such_module\n");
  for (const RewardAnswer& answer : reward.score({"a", "b"})) {
    EXPECT_NE(answer.failure.find("no_such_module"), std::string::npos) << answer.failure;
  }
  EXPECT_FALSE(reward.score(std::vector<std::string>(2000, "a")).back().failure.empty())
      << "of a broken program not every response is tried";
  EXPECT_LT(seconds_since(start), 10);
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
