// A reward program that misbehaves costs its response alone.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "cost_models/documents/problem.h"
#include "executor/rewards/program_words.h"
#include "executor/rewards/reward_workers.h"
#include "tests/executor/rewards/python_reward.h"
#include "tests/executor/temporary_folder.h"

namespace tessera {
namespace {

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

TEST(RewardWorkers, ACrashCostsItsResponse) {
  expect_only_bad_lost(
      PythonReward(misbehaving("os.kill(os.getpid(), signal.SIGSEGV)")).score(kMixed),
      "the process ended");
  expect_only_bad_lost(PythonReward(misbehaving("sys.exit('I leave')")).score(kMixed), "I leave");
}

TEST(RewardWorkers, AnExceptionAndANumberThatIsNoneCostTheirResponse) {
  expect_only_bad_lost(PythonReward(misbehaving("return [][0]")).score(kMixed), "IndexError");
  expect_only_bad_lost(PythonReward(misbehaving("return 'much'")).score(kMixed), "TypeError");
  expect_only_bad_lost(PythonReward(misbehaving("return float('nan')")).score(kMixed), "NaN");
  expect_only_bad_lost(PythonReward(misbehaving("return float('inf')")).score(kMixed), "Infinity");
  expect_only_bad_lost(PythonReward(misbehaving("return None")).score(kMixed), "TypeError");
}

/// Python has written every answer's process id: the ones that are lost cost no process.
TEST(RewardWorkers, AScoreThatIsNotFiniteCostsNoProcess) {
  PythonReward reward("");
  const std::string starts = reward.at("starts");
  std::ofstream(reward.at("reward.py"))
      << "open('" + starts + "', 'a').write('s')\n" + misbehaving("return float('nan')");
  expect_only_bad_lost(reward.score(kMixed, 1), "found NaN, expected a finite number");
  EXPECT_EQ(std::filesystem::file_size(starts), 1u) << "one process, started once";
}

/// What Python's, JavaScript's and C's own writers make of a number that is none.
TEST(RewardWorkers, AScoreThatIsNoneCostsAProgramNoProcessEither) {
  // Numbers that a double does not hold, or that fp32, which rewards are computed in, does not.
  const std::string digits(400, '7');
  for (const std::string& none :
       {std::string("NaN"), std::string("Infinity"), std::string("-Infinity"), std::string("nan"),
        std::string("-nan"), std::string("inf"), std::string("null"), std::string("1e999"),
        std::string("-1.5E+400"), std::string("1e+39"), digits, "-" + digits}) {
    const TemporaryFolder folder;
    const std::string starts = (folder.path / "starts").string();
    std::ofstream(folder.path / "program.py")
        << "import json, sys\n"
           "open('" +
               starts +
               "', 'a').write('s')\n"
               "for line in sys.stdin:\n"
               "    request = json.loads(line)\n"
               "    score = {'bad': '" +
               none +
               "', 'good': '1', 'other': '0.25'}[request['solution_str']]\n"
               "    sys.stdout.write('{\"id\": %d, \"pred\": \"NaN \\\\\" -inf\", "
               "\"score\":%s}\\n' "
               "% (request['id'], score))\n"
               "    sys.stdout.flush()\n";
    RewardWorkers pool({"python3", (folder.path / "program.py").string()},
                       {.timeout_s = 30, .sandbox = Sandbox::none}, 1);
    std::vector<RewardRequest> requests;
    for (const std::string& response : kMixed) requests.push_back(request(response));
    const std::vector<RewardAnswer> answers = pool.score(requests);
    const std::string told = none.size() < 80 ? none : none.substr(0, 80) + "...";
    expect_only_bad_lost(answers, "found " + told + ", expected a finite number");
    EXPECT_EQ(answers[0].detail.answer, "NaN \" -inf");
    EXPECT_EQ(std::filesystem::file_size(starts), 1u) << none << ": one process, started once";
  }
}

TEST(RewardWorkers, AnIntegerBeyond64BitsIsANumber) {
  const TemporaryFolder folder;
  std::ofstream(folder.path / "program.py") << "import json, sys\n"
                                               "for line in sys.stdin:\n"
                                               "    sys.stdout.write('{\"id\": %d, \"score\": "
                                               "%d}\\n' % (json.loads(line)['id'], 3 * 2 ** 70))\n"
                                               "    sys.stdout.flush()\n";
  RewardWorkers pool({"python3", (folder.path / "program.py").string()},
                     {.timeout_s = 30, .sandbox = Sandbox::none}, 1);
  const std::vector<RewardRequest> requests{request("any")};
  EXPECT_EQ(pool.score(requests)[0].score, 3 * std::ldexp(1.0, 70));
}

TEST(RewardWorkers, AnAccuracyThatIsNotFiniteIsLeftOutOfItsScore) {
  const auto answers = PythonReward(misbehaving("return {'score': 0.5, 'acc': float('nan'), "
                                                "'pred': 'x' + chr(0xd800)}"))
                           .score(kMixed);
  EXPECT_EQ(answers[1].score, 0.5) << answers[1].failure;
  EXPECT_FALSE(answers[1].detail.accuracy);
  EXPECT_EQ(answers[1].detail.answer, "x?");
  EXPECT_EQ(answers[1].left_out, "acc: found NaN, expected a finite number: left out");
  EXPECT_TRUE(answers[0].left_out.empty());
}

/// Python's own traceback of the file is the oracle: line 4 of misbehaving() is the statement.
TEST(RewardWorkers, AnExceptionSaysWhereItIsRaisedAndHow) {
  const std::string words(200, 'w');
  const auto answers =
      PythonReward(misbehaving("raise KeyError('" + words + "\\n\\x1b[31m\\ud800')")).score(kMixed);
  const RewardAnswer& bad = answers[1];
  EXPECT_EQ(bad.kind, "reward.py:4: KeyError");
  EXPECT_TRUE(bad.failure.starts_with("reward.py:4: KeyError: '" + words)) << bad.failure;
  EXPECT_EQ(bad.failure.find('\n'), std::string::npos);
  EXPECT_TRUE(bad.traceback.starts_with("Traceback (most recent call last):\n  File \""))
      << bad.traceback;
  EXPECT_NE(bad.traceback.find("reward.py\", line 4, in compute_score\n    raise KeyError("),
            std::string::npos)
      << bad.traceback;
  EXPECT_EQ(bad.traceback.find("<string>"), std::string::npos) << "the file's frames alone";
  EXPECT_EQ(bad.traceback.find('\x1b'), std::string::npos);
}

TEST(RewardWorkers, AnExceptionOfTheCallHasNoPlaceInTheFile) {
  const auto answers = PythonReward(misbehaving("return {'acc': 1}")).score(kMixed);
  EXPECT_EQ(answers[1].failure, "KeyError: 'score'");
  EXPECT_EQ(answers[1].kind, "KeyError");
  EXPECT_TRUE(answers[1].traceback.empty());
}

TEST(ProgramWords, EachKindOfFailureIsToldOnceARoundAndItsTracebackOnceARun) {
  const auto failed = [](const std::string& kind, const std::string& text) {
    return RewardAnswer{.failure = kind + ": " + text, .kind = kind, .traceback = "T\n" + text};
  };
  ProgramWords one, other;
  add_words(one, "f", failed("a.py:1: KeyError", "'x'"));
  add_words(one, "f", failed("a.py:1: KeyError", "'y'"));
  add_words(other, "f", failed("a.py:1: KeyError", "'z'"));
  add_words(other, "f", failed("a.py:2: ValueError", "v"));
  add_words(other, "f", {.score = 1, .left_out = "acc: found NaN"});
  add_words(other, "f", {.failure = "no answer in time"});
  const ProgramWords all = words_of_all({packed_words(one), packed_words({}), packed_words(other)});
  std::set<std::string> told;
  EXPECT_EQ(lines_of(all, 5, 9, told),
            (std::vector<std::string>{"5 of 9 responses have no score (f: a.py:1: KeyError: 'x')",
                                      "the first f: a.py:1: KeyError\n  T\n  'x'",
                                      "some of them: f: a.py:2: ValueError: v",
                                      "the first f: a.py:2: ValueError\n  T\n  v",
                                      "some of them: f: no answer in time", "f: acc: found NaN"}));
  EXPECT_EQ(lines_of(all, 5, 9, told),
            (std::vector<std::string>{"5 of 9 responses have no score (f: a.py:1: KeyError: 'x')",
                                      "some of them: f: a.py:2: ValueError: v",
                                      "some of them: f: no answer in time"}));
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

}  // namespace
}  // namespace tessera
