// What `tessera doctor RUN` finds in the folders of runs whose ranks died, stalled or ended.
#include "cli/processes/run_diagnosis.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "cost_models/documents/problem.h"
#include "simulator/timeline/run_lock.h"

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

/// The file stays when a run has ended, with the name of a process that is gone.
TEST_F(Diagnosis, ALockHasAHolderWhileItIsHeldAlone) {
  write("run.yaml", "version: 1\n");
  write("lock", "process 4239 on node1\n");
  EXPECT_EQ(found().holder, "");
  Problems problems;
  const auto lock = RunLock::take(run_ / "lock", 0, problems);
  ASSERT_TRUE(lock);
  EXPECT_THAT(found().holder, HasSubstr("process " + std::to_string(::getpid()) + " on "));
}

TEST_F(Diagnosis, ARankThatWasKilledIsTheCauseAndTheCheckpointTheWayOn) {
  ended(rank(0, [](RankStatusFile& file) { file.finish(75); }));
  ended(rank(1, [](RankStatusFile&) { ::raise(SIGKILL); }));
  write("run.yaml", "version: 1\n");
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
  fs::remove(run_ / "run.yaml");  // as train-reward has none
  EXPECT_THAT(found().advice, Contains(HasSubstr("go on from step 20: its own command with ")));
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

TEST_F(Diagnosis, ARunThatDivergedIsNoErrorOfTheProgram) {
  ended(rank(0, [](RankStatusFile& file) { file.finish(1); }));
  const RunDiagnosis run = found();
  EXPECT_THAT(run.advice, Contains(HasSubstr("and a lower learning rate")));
  EXPECT_THAT(run.advice, Not(Contains(HasSubstr("report it"))));
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

/// A rank's flight record of a step's collectives, of which it enters so many.
void take_part(FlightRecorder& recorder, const fs::path& run, int rank, int enters, bool leaves) {
  recorder.keep_in(run, rank);
  const int tp = recorder.add_group("world/0.0", "actor tp", 2, rank);
  recorder.enter("gen", 31);
  for (int i = 1; i <= enters; ++i) {
    const std::int64_t number = recorder.begin(
        tp, {.kind = CollectiveKind::all_reduce, .bytes = 2'000'000, .type = DType::bf16});
    if (i < enters || leaves) recorder.end(number);
  }
}

TEST_F(Diagnosis, TheCollectiveThatAKilledRankDidNotEnterIsNamed) {
  ended(rank(0, [this](RankStatusFile& file) {
    FlightRecorder recorder;
    take_part(recorder, run_, 0, 5, false);
    file.finish(75);
  }));
  ended(rank(1, [this](RankStatusFile&) {
    FlightRecorder recorder;
    take_part(recorder, run_, 1, 4, true);
    ::raise(SIGKILL);
  }));
  const RunDiagnosis run = found();
  EXPECT_THAT(run.waits.waited_for, testing::ElementsAre(1));
  ASSERT_EQ(run.waits.waits.size(), 1U);
  EXPECT_EQ(run.waits.waits[0].what.sequence, 5);
  EXPECT_THAT(run.waits.waits[0].waiting, testing::ElementsAre(0));
  EXPECT_THAT(sentences_of(run.waits, run.collectives.records),
              Contains(HasSubstr("rank 0 waits in all_reduce 5 of actor tp (2 MB of bf16)")));
}

TEST_F(Diagnosis, OfALivingRunTheStoppedRankIsWhatTheOthersWaitFor) {
  const auto works = [this](int number, int enters, bool leaves) {
    return rank(number, [=, this](RankStatusFile&) {
      FlightRecorder recorder;
      take_part(recorder, run_, number, enters, leaves);
      for (;;) ::pause();
    });
  };
  left_ = {works(0, 3, false), works(1, 2, true)};
  while (read_flight_records(run_, read_rank_statuses(run_)).records.size() < 2) ::usleep(10'000);
  EXPECT_TRUE(found().waits.waits.empty()) << "it has waited for a moment alone";
  ::usleep(2'100'000);
  RunDiagnosis run = found();
  EXPECT_THAT(run.waits.waited_for, testing::ElementsAre(1));
  EXPECT_THAT(run.advice.front(), HasSubstr("others wait for rank 1"));
  ::kill(left_[1], SIGSTOP);
  run = found();
  EXPECT_THAT(run.waits.waited_for, testing::ElementsAre(1));
  EXPECT_THAT(run.advice, testing::ElementsAre(HasSubstr("rank 1 gives no sign of life")));
}

TEST_F(Diagnosis, ARecordThatIsCutIsSaid) {
  ended(rank(0, [this](RankStatusFile& file) {
    FlightRecorder recorder;
    take_part(recorder, run_, 0, 5, true);
    file.finish(0);
  }));
  fs::resize_file(run_ / "ranks/0.collectives", 1000);
  EXPECT_THAT(
      found().collectives.troubles,
      testing::ElementsAre(HasSubstr("rank 0 has no record of its collectives: 1000 bytes")));
}

TEST_F(Diagnosis, ARunOfWhichARankLeftNothingHasNotEndedAsPlanned) {
  ended(rank(1, [](RankStatusFile& file) { file.finish(0); }));
  RunDiagnosis run = found();
  EXPECT_EQ(run.verdict.exit_code, 75);
  EXPECT_THAT(run.verdict.message, HasSubstr("rank 0: its file is missing"));
  EXPECT_THAT(run.advice, Not(Contains(HasSubstr("as planned"))));
  write("ranks/0", "half a fi");
  run = found();
  ASSERT_EQ(run.unread.size(), 1U);
  EXPECT_THAT(run.verdict.message, HasSubstr("rank 0: its file cannot be read: 9 bytes instead"));
  EXPECT_EQ(run.verdict.exit_code, 75);
}

TEST_F(Diagnosis, ARankThatPausesDoesNotWork) {
  left_ = {rank(0, [](RankStatusFile& file) {
    file.enter("paused", 31);
    for (;;) ::pause();
  })};
  while (read_rank_statuses(run_).empty() || read_rank_statuses(run_)[0].phase != "paused") {
    ::usleep(10'000);
  }
  EXPECT_THAT(describe(found().ranks.at(0)), HasSubstr("pauses"));
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
