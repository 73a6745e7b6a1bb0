// What `tessera doctor RUN` finds in the folders of runs whose ranks died, stalled or ended.
#include "cli/processes/run_diagnosis.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;

class Diagnosis : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = fs::temp_directory_path() / "tessera-diagnosis-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    run_ = pattern;
  }
  void TearDown() override {
    for (const int pid : left_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    fs::remove_all(run_);
  }

  /// A rank in a process of its own: a step 31's generation, then what `ends` does.
  int rank(int number, const std::function<void(RankStatusFile&)>& ends) {
    const int pid = ::fork();
    if (pid == 0) {
      RankStatusFile file(run_, number);
      file.enter("gen", 31);
      ends(file);
      ::_exit(0);
    }
    return pid;
  }
  static void ended(int pid) { ::waitpid(pid, nullptr, 0); }

  void write(const std::string& name, const std::string& text) {
    fs::create_directories((run_ / name).parent_path());
    std::ofstream(run_ / name) << text;
  }

  RunDiagnosis found() {
    Problems problems;
    auto result = diagnose(run_, false, problems);
    EXPECT_TRUE(result) << (problems.empty() ? "" : to_string(problems[0]));
    return result ? *std::move(result) : RunDiagnosis{};
  }

  fs::path run_;
  std::vector<int> left_;
};

TEST_F(Diagnosis, ARankThatWasKilledIsTheCauseAndTheCheckpointTheWayOn) {
  ended(rank(0, [](RankStatusFile& file) { file.finish(75); }));
  ended(rank(1, [](RankStatusFile&) { ::raise(SIGKILL); }));
  write("metrics.jsonl", R"({"step":30,"data":{"perf/max_memory_allocated_gb":1.5,"loss":1}})"
                         "\n");
  write("log.txt", "step 29: reward 0.1\nstep 30: reward 0.2\n");
  fs::create_directories(run_ / "checkpoints/global_step_20");
  fs::create_directories(run_ / "checkpoints/.global_step_30.partial");
  const RunDiagnosis run = found();
  EXPECT_FALSE(run.alive);
  EXPECT_EQ(run.verdict.exit_code, 75);
  EXPECT_THAT(run.verdict.message, HasSubstr("lost rank 1 in phase gen of step 31"));
  EXPECT_EQ(run.last_step, 30);
  EXPECT_EQ(run.checkpoint, 20);
  ASSERT_EQ(run.memory.size(), 1U);
  EXPECT_EQ(run.memory[0].second, 1.5);
  EXPECT_EQ(run.log_tail.back(), "step 30: reward 0.2");
  EXPECT_THAT(run.advice, Contains(HasSubstr("killed")));
  EXPECT_THAT(run.advice, Contains(HasSubstr("go on from step 20: tessera run ")));
  EXPECT_THAT(describe(run.ranks.at(0)), HasSubstr("ended with code 75"));
  EXPECT_THAT(describe(run.ranks.at(1)), HasSubstr("rank 1 in phase gen of step 31, since "));
  EXPECT_THAT(describe(run.ranks.at(1)), HasSubstr("died without a word"));
}

// The first error is the cause, what the others say follows from it.
TEST_F(Diagnosis, ARankThatFailedIsNamedWithItsCodeAndWhatThatMeans) {
  ended(rank(0, [](RankStatusFile& file) { file.finish(75); }));
  ended(rank(1, [](RankStatusFile& file) { file.finish(74); }));
  const RunDiagnosis run = found();
  EXPECT_THAT(run.verdict.message, HasSubstr("rank 1 in phase gen of step 31 failed with code 74"));
  EXPECT_THAT(run.advice, Contains(HasSubstr("df")));
  EXPECT_THAT(run.advice, Contains(HasSubstr("no checkpoint")));
}

TEST_F(Diagnosis, OutOfMemoryHasItsAccount) {
  ended(rank(0, [](RankStatusFile& file) { file.finish(71); }));
  write("oom.json", R"({"rank": 0, "phase": "gen"})");
  const RunDiagnosis run = found();
  EXPECT_THAT(run.out_of_memory, HasSubstr("\"phase\": \"gen\""));
  EXPECT_THAT(run.advice.front(), HasSubstr("oom.json"));
}

TEST_F(Diagnosis, ALivingRunIsLeftAloneAndASilentRankNamed) {
  const auto works = [](RankStatusFile&) {
    for (;;) ::pause();
  };
  left_ = {rank(0, works), rank(1, works)};
  while (read_rank_statuses(run_).size() < 2) ::usleep(10'000);
  RunDiagnosis run = found();
  EXPECT_TRUE(run.alive);
  EXPECT_THAT(run.advice.front(), HasSubstr("nothing: it runs"));
  EXPECT_THAT(describe(run.ranks.at(0)), HasSubstr("works"));
  ::kill(left_[1], SIGSTOP);
  ::usleep(300'000);
  run = found();
  EXPECT_THAT(describe(run.ranks.at(0)), HasSubstr("works"));
  EXPECT_THAT(describe(run.ranks.at(1)), HasSubstr("gives no sign of life"));
  EXPECT_THAT(run.advice.front(), HasSubstr("rank 1 gives no sign of life: is pid "));
}

// As a launcher does where the command that started it is killed: no rank says why it ended.
TEST_F(Diagnosis, RanksThatWereTerminatedHaveNotEndedAsPlanned) {
  for (int number : {0, 1}) ended(rank(number, [](RankStatusFile&) { ::raise(SIGTERM); }));
  const RunDiagnosis run = found();
  EXPECT_EQ(run.verdict.exit_code, 75);
  EXPECT_THAT(run.verdict.message, HasSubstr("was terminated"));
  EXPECT_THAT(run.advice.front(), HasSubstr("SIGTERM"));
}

TEST_F(Diagnosis, ARunThatEndedAsPlannedNeedsNothingAndOtherFoldersAreRefused) {
  ended(rank(0, [](RankStatusFile& file) { file.finish(0); }));
  const RunDiagnosis run = found();
  EXPECT_EQ(run.verdict.exit_code, 0);
  EXPECT_EQ(run.verdict.message, "");
  EXPECT_THAT(run.advice.front(), HasSubstr("as planned"));
  Problems problems;
  EXPECT_FALSE(diagnose(run_ / "checkpoints", false, problems));
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(to_string(problems[0]), HasSubstr("the folder of a run"));
}

}  // namespace
}  // namespace tessera
