// Supervision of real processes under mpirun: who died, what is left, how it ends.
#include "cli/processes/supervise.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "cli/processes/run_signals.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

class Supervise : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "tessera-supervise-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    run_ = pattern;
    watch_run_signals();
  }
  void TearDown() override { std::filesystem::remove_all(run_); }

  SupervisedRun fake(std::vector<std::string> arguments, int ranks = 3) {
    SupervisedRun made{{FAKE_RANK, run_.string()}, ranks, false, run_};
    made.command.insert(made.command.end(), arguments.begin(), arguments.end());
    return made;
  }

  /// Interrupts this process, which supervises, after all ranks are under way.
  std::thread interrupt_when_running(int ranks, std::vector<std::chrono::milliseconds> delays) {
    return std::thread([this, ranks, delays = std::move(delays)] {
      const auto under_way = [&] {
        const auto all = read_rank_statuses(run_);
        return static_cast<int>(all.size()) == ranks &&
               std::all_of(all.begin(), all.end(), [](const RankStatus& r) { return r.step > 1; });
      };
      for (int i = 0; i < 1000 && !under_way(); ++i) std::this_thread::sleep_for(10ms);
      for (const auto delay : delays) {
        std::this_thread::sleep_for(delay);
        ::kill(::getpid(), SIGINT);
      }
    });
  }

  void expect_no_orphan(int ranks) {
    const auto all = read_rank_statuses(run_);
    EXPECT_EQ(static_cast<int>(all.size()), ranks);
    for (const RankStatus& rank : all) EXPECT_FALSE(is_alive(rank.pid)) << "rank " << rank.rank;
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
  }

  std::filesystem::path run_;
  std::ostringstream log_;
};

TEST_F(Supervise, ARunThatEndsWellReturnsZero) {
  EXPECT_EQ(supervise(fake({"--short"}), log_).exit_code, 0);
  EXPECT_EQ(log_.str(), "");
  expect_no_orphan(3);
}

/// A rank that is stopped, or computes for ever, is named itself, and not one that waits for it.
TEST_F(Supervise, NamesTheStalledRankAndItsPhase) {
  for (const char* how : {"--stop", "--spin"}) {
    for (const char* rank : {"0", "1", "2"}) {
      log_.str("");
      const Clock::time_point begin = Clock::now();
      EXPECT_EQ(supervise(fake({how, rank, "reshard"}), log_).exit_code, 75);
      EXPECT_THAT(log_.str(),
                  HasSubstr(std::string("stalled: rank ") + rank + " in phase reshard of step 2"))
          << how;
      EXPECT_THAT(log_.str(), HasSubstr(how == std::string("--stop") ? "no sign of life for"
                                                                     : "others waited for it"));
      const std::string is_waited_for =
          std::string("rank ") + rank +
          " is waited for, and waits for nobody; its last was all_reduce 4 of world (4 bytes of "
          "int32), ended ";
      EXPECT_THAT(log_.str(), HasSubstr(is_waited_for));
      EXPECT_THAT(log_.str(), HasSubstr(" wait in all_reduce 5 of world (4 bytes of int32) of step "
                                        "2, phase reshard, since "));
      EXPECT_THAT(log_.str(), HasSubstr(std::string("rank ") + rank + " has not entered it"));
      EXPECT_LT(Clock::now() - begin, 18s) << "within 15 s after the limit of 3 s";
      expect_no_orphan(3);
    }
  }
}

/// Ranks that go on would work for nothing, and be said not to have started.
TEST_F(Supervise, ARunWhoseFolderIsRemovedEnds) {
  for (const bool made_again : {false, true}) {
    log_.str("");
    std::thread remove([&] {
      for (int i = 0; i < 1000 && read_rank_statuses(run_).size() < 3; ++i) {
        std::this_thread::sleep_for(10ms);
      }
      std::filesystem::rename(run_, run_.string() + ".gone");
      if (made_again) std::filesystem::create_directory(run_);
    });
    EXPECT_EQ(supervise(fake({}), log_).exit_code, 74);
    remove.join();
    EXPECT_THAT(log_.str(), HasSubstr("the run's folder was removed while the run worked"));
    std::filesystem::remove_all(run_);
    std::filesystem::rename(run_.string() + ".gone", run_);
    expect_no_orphan(3);
  }
}

TEST_F(Supervise, NamesTheKilledRankAndItsPhase) {
  for (const char* phase : {"gen", "reshard", "update_actor"}) {
    log_.str("");
    const Clock::time_point begin = Clock::now();
    EXPECT_EQ(supervise(fake({"--kill", "1", phase}), log_).exit_code, 75);
    EXPECT_THAT(log_.str(), HasSubstr("lost rank 1 in phase " + std::string(phase) + " of step 2"));
    EXPECT_LT(Clock::now() - begin, 6s);  // 5 s after the death
    expect_no_orphan(3);
  }
}

TEST_F(Supervise, PassesOnTheCodeOfARankThatFailedItself) {
  EXPECT_EQ(supervise(fake({"--fail", "2", "65"}), log_).exit_code, 65);
  EXPECT_THAT(log_.str(), HasSubstr("rank 2 in phase gen of step 2 failed with code 65"));
  expect_no_orphan(3);
}

TEST_F(Supervise, AnInterruptStopsTheRunBetweenPhases) {
  std::thread interrupter = interrupt_when_running(3, {0ms});
  EXPECT_EQ(supervise(fake({}), log_).exit_code, 130);
  interrupter.join();
  EXPECT_TRUE(stop_requested(run_));
  for (const RankStatus& rank : read_rank_statuses(run_)) {
    EXPECT_EQ(rank.state, RankState::finished);
    EXPECT_EQ(rank.exit_code, 130);
  }
  expect_no_orphan(3);
}

TEST_F(Supervise, ASecondInterruptKills) {
  std::thread interrupter = interrupt_when_running(3, {0ms, 300ms});
  const Clock::time_point begin = Clock::now();
  EXPECT_EQ(supervise(fake({"--deaf"}), log_).exit_code, 130);
  interrupter.join();
  EXPECT_LT(Clock::now() - begin, 8s);  // deaf ranks would go on for 12 s
  expect_no_orphan(3);
}

TEST_F(Supervise, SaysThatTheProgramIsMissing) {
  SupervisedRun run = fake({});
  run.command[0] = "/nonexistent/tessera-run";
  EXPECT_EQ(supervise(run, log_).exit_code, 69);
  EXPECT_THAT(log_.str(), HasSubstr("/nonexistent/tessera-run is missing"));
}

TEST_F(Supervise, SaysThatTheLauncherIsMissing) {
  const std::string path = ::getenv("PATH");
  ::setenv("PATH", "/nonexistent", 1);
  EXPECT_EQ(supervise(fake({}), log_).exit_code, 69);
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_THAT(log_.str(), HasSubstr("openmpi-bin"));
}

RankStatus rank(int number, RankState state, int code = 0) {
  return {.rank = number, .pid = 1, .phase = "gen", .step = 4, .state = state, .exit_code = code};
}

/// Launchers end with their ranks' code, which here is that of a signal.
TEST(Judge, RanksThatSavedToBeQueuedAgainAreNeitherKilledNorFailed) {
  const Verdict verdict =
      judge({rank(0, RankState::finished, 138), rank(1, RankState::finished, 138)}, 2,
            {.launcher_code = 138, .stopped = StopReason::requeue});
  EXPECT_EQ(verdict.exit_code, 138);
  EXPECT_EQ(verdict.message, "saved, to be queued again");
}

/// The request came before the ranks could hear of it: it is still what the user asked for.
TEST(Judge, ARequestThatFoundNoRanksIsObeyedAllTheSame) {
  EXPECT_EQ(judge({}, 2, {.launcher_code = 143, .stopped = StopReason::stop}).exit_code, 130);
  EXPECT_EQ(judge({}, 2, {.launcher_code = 143, .stopped = StopReason::requeue}).exit_code, 138);
  EXPECT_EQ(judge({}, 2, {.launcher_code = 138, .stopped = StopReason::requeue}).exit_code, 138);
  EXPECT_EQ(judge({rank(0, RankState::running)}, 2,
                  {.launcher_code = 137, .first_dead = 0, .stopped = StopReason::requeue})
                .exit_code,
            138);
}

TEST(Judge, TheUnmarkedRankDiedFirstWhenOthersWereTerminated) {
  const Verdict verdict = judge({rank(0, RankState::terminated), rank(1, RankState::running),
                                 rank(2, RankState::finished, 75)},
                                3, {.launcher_code = 137});
  EXPECT_EQ(verdict.exit_code, 75);
  EXPECT_EQ(verdict.message, "lost rank 1 in phase gen of step 4");
}

TEST(Judge, OfSeveralUnmarkedRanksTheOneSeenDeadFirstCounts) {
  EXPECT_THAT(judge({rank(0, RankState::running), rank(1, RankState::running)}, 2,
                    {.launcher_code = 137, .first_dead = 1})
                  .message,
              HasSubstr("rank 1"));
}

TEST(Judge, AnOwnFailureExplainsTheRest) {
  const Verdict verdict = judge({rank(0, RankState::running), rank(1, RankState::finished, 74)}, 2,
                                {.launcher_code = 74, .first_dead = 0});
  EXPECT_EQ(verdict.exit_code, 74);
}

TEST(Judge, ARankThatNeverStartedIsLostUnlessAllRefused) {
  EXPECT_EQ(judge({rank(0, RankState::finished)}, 2, {.launcher_code = 137}).exit_code, 75);
  EXPECT_EQ(judge({}, 2, {.launcher_code = 65}).exit_code, 65);
  EXPECT_EQ(judge({}, 2, {.launcher_code = 127}).exit_code, 69);
}

TEST(Judge, AllFinishedIsSuccess) {
  EXPECT_EQ(judge({rank(0, RankState::finished), rank(1, RankState::finished)}, 2, {}).exit_code,
            0);
}

TEST(LauncherCommand, IsMpirunForCpusAndTheProgramItselfForGpus) {
  EXPECT_THAT(launcher_command({{"tessera-run", "plan.json"}, 4, false, "."}),
              ::testing::ElementsAre("mpirun", "--quiet", "--allow-run-as-root", "--oversubscribe",
                                     "--bind-to", "none", "-n", "4", "tessera-run", "plan.json"));
  EXPECT_THAT(
      launcher_command({{"tessera-run", "train", "--folder", "x"}, 2, true, "."}),
      ::testing::ElementsAre("tessera-run", "start", "--ranks", "2", "train", "--folder", "x"));
}

}  // namespace
}  // namespace tessera
