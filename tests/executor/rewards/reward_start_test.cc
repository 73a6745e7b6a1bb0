// What is wrong with a reward file is known before a run: with the file, the line and the reason.
#include <gmock/gmock.h>

#include "cost_models/documents/problem.h"
#include "executor/rewards/reward_functions.h"
#include "tests/executor/rewards/python_reward.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

/// What is said of a reward file of these lines.
std::string said_of(const PythonReward& reward, const std::string& kwargs = "{}",
                    RewardPrograms programs = {}) {
  programs.run_file = "mine.yaml";
  programs.limits = reward.limits;
  Problems problems;
  check_reward_functions({.functions = {{.name = "reward",
                                         .file = reward.folder.path / "reward.py",
                                         .kwargs = kwargs}},
                          .programs = programs},
                         problems);
  std::string text;
  for (const Problem& problem : problems) text += to_string(problem) + "\n";
  return text;
}
std::string said_of(const std::string& text, const std::string& kwargs = "{}") {
  return said_of(PythonReward(text), kwargs);
}

constexpr const char* kGood =
    "def compute_score(data_source, solution_str, ground_truth, extra_info=None, scale=1):\n"
    "    return 1\n";

TEST(RewardStart, AFileThatScoresIsNotRefused) {
  EXPECT_THAT(said_of(kGood), IsEmpty());
  EXPECT_THAT(said_of(kGood, R"({"scale": 2})"), IsEmpty());
  EXPECT_THAT(said_of("print('x' * 1000000)\ncompute_score = lambda **all: 0\n"), IsEmpty());
  EXPECT_THAT(said_of("class Score:\n"
                      "    def __call__(self, data_source, solution_str, ground_truth, **more):\n"
                      "        return 0\n"
                      "compute_score = Score()\n"),
              IsEmpty());
}

TEST(RewardStart, TheLineThatCannotBeLoadedIsNamed) {
  EXPECT_THAT(said_of("import json\n\ndef compute_score(:\n"),
              AllOf(HasSubstr("/reward.py:3: found SyntaxError: "),
                    HasSubstr("expected compute_score(data_source, solution_str, ")));
  EXPECT_THAT(said_of("\nimport no_such_module\n" + std::string(kGood)),
              HasSubstr("/reward.py:2: found ModuleNotFoundError: No module named "
                        "'no_such_module'"));
  EXPECT_THAT(said_of("x = 1\nfrom json import no_such_name\n" + std::string(kGood)),
              HasSubstr("/reward.py:2: found ImportError: "));
  EXPECT_THAT(said_of("table = {}\n\n\ndef first():\n    return table['a']\n\nfirst()\n"),
              HasSubstr("/reward.py:5: found KeyError: 'a'"))
      << "where it happened, not the line that called it";
  EXPECT_THAT(said_of("import sys\nsys.exit(3)\n"), HasSubstr("/reward.py:2: found SystemExit: 3"));
}

TEST(RewardStart, AModuleBesideTheFileIsNamedWhereItIsAtFault) {
  PythonReward reward("import beside\n" + std::string(kGood));
  std::ofstream(reward.folder.path / "beside.py") << "a = 1\nb = undefined\n";
  EXPECT_THAT(said_of(reward), HasSubstr("/beside.py:2: found NameError: "));
}

TEST(RewardStart, AFunctionThatCannotBeCalledIsNamed) {
  EXPECT_THAT(said_of("\ndef score(*all):\n    return 1\n"),
              HasSubstr("/reward.py: found no function compute_score: it has score in line 2"));
  EXPECT_THAT(said_of("compute_score = 1\n"),
              HasSubstr("found compute_score, which is no function but int"));
  EXPECT_THAT(said_of("\n\ndef compute_score(solution_str, ground_truth):\n    return 1\n"),
              AllOf(HasSubstr("/reward.py:3: found compute_score(solution_str, ground_truth): "),
                    HasSubstr("unexpected keyword argument 'data_source'")));
  EXPECT_THAT(said_of(kGood, R"({"scal": 2})"),
              AllOf(HasSubstr("/reward.py:1: "), HasSubstr("'scal'"), HasSubstr("reward_kwargs")));
}

TEST(RewardStart, AFileThatEndsOrHangsIsNamed) {
  EXPECT_THAT(said_of("import os, sys\nprint('the end', file=sys.stderr)\nos._exit(3)\n"),
              HasSubstr("/reward.py: found the process ended: the end"));
  PythonReward hangs("import time\ntime.sleep(1000)\n");
  hangs.limits.start_timeout_s = 0.5;
  EXPECT_THAT(said_of(hangs), AllOf(HasSubstr("not ready after 0.5 s"),
                                    HasSubstr("reward.workers.start_timeout_s")));
  PythonReward large("import os\nall = bytearray(4 << 30)\n");
  EXPECT_THAT(said_of(large), HasSubstr("/reward.py:2: found MemoryError, expected"));
}

TEST(RewardStart, TheSandboxOfTheRunIsThatOfTheLook) {
  PythonReward reward("open('/etc/written-by-a-reward', 'w')\n" + std::string(kGood));
  reward.limits.sandbox = Sandbox::automatic;
  bool boxed = false;
  Problems problems;
  in_sandbox({"true"}, Sandbox::automatic, boxed, problems);
  if (!boxed) GTEST_SKIP() << "bubblewrap cannot be used here";
  EXPECT_THAT(said_of(reward), HasSubstr("/reward.py:1: found OSError: "));
}

TEST(RewardStart, ProgramsThatAreNotThereAreNamedByTheRunFile) {
  EXPECT_THAT(said_of(PythonReward(kGood), "{}", {.python = "/no/python"}),
              StartsWith("mine.yaml:reward.workers.python: found /no/python, "));
  RewardPrograms programs{.run_file = "mine.yaml"};
  programs.limits.sandbox = Sandbox::none;
  const auto said = [&](std::vector<std::string> command) {
    Problems problems;
    check_reward_functions(
        {.functions = {{.name = "judge", .command = std::move(command)}}, .programs = programs},
        problems);
    return problems.empty() ? "" : to_string(problems.front());
  };
  EXPECT_THAT(said({"./no-judge", "--strict"}),
              StartsWith("mine.yaml:reward.functions (judge): found ./no-judge, "));
  EXPECT_THAT(said({"no-such-program"}), HasSubstr("found no-such-program, "));
  EXPECT_THAT(said({"sh"}), IsEmpty());
  EXPECT_THAT(said({"/bin/sh"}), IsEmpty());
}

TEST(RewardStart, AFileThatIsNotThereIsNamed) {
  const PythonReward reward(kGood);
  std::filesystem::remove(reward.folder.path / "reward.py");
  EXPECT_THAT(said_of(reward),
              AllOf(StartsWith("mine.yaml:reward.custom_reward_function.path: found '/"),
                    HasSubstr("/reward.py', no such file, expected a Python file with "
                              "compute_score")));
}

/// As it is said where a file breaks while a run goes on.
TEST(RewardStart, AResponseOfARunIsToldTheSame) {
  PythonReward reward("import no_such_module\n");
  EXPECT_THAT(reward.score({"a"}, 1).at(0).failure,
              HasSubstr("/reward.py:1: ModuleNotFoundError: No module named 'no_such_module'"));
}

}  // namespace
}  // namespace tessera
