// What happens to a real PPO run when a rank is killed in any phase, and when the user interrupts.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "simulator/timeline/rank_status.h"
#include "tests/cli/programs.h"
#include "tests/cli/running_program.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr int kRanks = 4;

class RunFailure : public ProgramTest {
 protected:
  static void SetUpTestSuite() {
    ProgramTest::SetUpTestSuite();
    std::ofstream(at("ppo.yaml")) << "version: 1\nalgorithm: ppo\nprompts_per_step: 32\n"
                                     "samples_per_prompt: 16\nprompt_tokens: 8\n"
                                     "response_tokens: {mean: 4, cv: 0, max: 4}\n"
                                     "mini_batches: 1\nepochs: 2\nkl: reward\n";
    ASSERT_EQ(
        run("plan --model " + at("model") + " --cluster local-cpu --workload " + at("ppo.yaml") +
            " --fix actor.tp=2 actor.pp=2 "
            "rollout.tp=2 rollout.dp=2 critic.tp=2 critic.pp=2 -o " +
            at("ppo.json")),
        0);
  }

  RunningProgram start(const std::string& name, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {kTessera,
                                      "run",
                                      at("ppo.json"),
                                      "--config",
                                      "ppo-digits",
                                      "--set",
                                      "data.train_files=[" + at("prompts.jsonl") + "]",
                                      "--set",
                                      "trainer.total_training_steps=100000",
                                      "--set",
                                      "trainer.max_actor_ckpt_to_keep=2"};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"-o", at(name)});
    return RunningProgram(words, at(name + ".txt"));
  }

  /// Waits until the rank is in `phase` of step `least` or a later one.
  static std::optional<RankStatus> await(const std::string& name, int rank,
                                         const std::string& phase, RunningProgram& program,
                                         std::int64_t least = 2) {
    const fs::path file = folder_ / name / "ranks" / std::to_string(rank);
    const Clock::time_point until = Clock::now() + 60s;
    while (Clock::now() < until && !program.ended()) {
      // Short phases last a fraction of a millisecond: look without a pause once they can come.
      const auto status = read_rank_status(file);
      if (!status || status->step < least) {
        std::this_thread::sleep_for(5ms);
      } else if (phase.empty() || status->phase == phase) {
        return status;
      }
    }
    return std::nullopt;
  }

  static void expect_no_orphan(const std::string& name) {
    const auto all = read_rank_statuses(folder_ / name);
    EXPECT_EQ(all.size(), static_cast<std::size_t>(kRanks));
    for (const RankStatus& rank : all) EXPECT_FALSE(is_alive(rank.pid)) << "rank " << rank.rank;
  }

  /// Kills rank 1 when it is seen in `phase`; returns the phase in which the death found it.
  std::string kill_in(const std::string& phase, const std::string& name) {
    RunningProgram program = start(name, {"--set", "trainer.save_freq=1"});
    const auto victim = await(name, 1, phase, program);
    if (!victim) {
      ADD_FAILURE() << "never in phase " << phase << "\n" << program.messages();
      return phase;
    }
    ::kill(victim->pid, SIGKILL);
    EXPECT_EQ(program.wait(5s), 75) << program.messages();
    const auto last = read_rank_status(folder_ / name / "ranks" / "1");
    const std::string died_in = last ? last->phase : "";
    EXPECT_NE(program.messages().find("lost rank 1 in phase " + died_in + " of step " +
                                      std::to_string(last ? last->step : 0)),
              std::string::npos)
        << program.messages();
    expect_no_orphan(name);
    return died_in;
  }
};

class KilledRank : public RunFailure, public testing::WithParamInterface<const char*> {};

TEST_P(KilledRank, EndsTheRunWithin5SecondsNamedWithItsPhase) {
  const std::string phase = GetParam();
  // A phase of microseconds may be over between the look and the signal: try again then.
  for (int attempt = 0; attempt < 8; ++attempt) {
    const std::string name = "killed-" + phase + "-" + std::to_string(attempt);
    if (kill_in(phase, name) == phase || HasFailure()) return;
  }
  FAIL() << "no attempt hit phase " << phase;
}

INSTANTIATE_TEST_SUITE_P(Phases, KilledRank,
                         testing::Values("reshard", "gen", "reward", "old_log_prob", "ref",
                                         "values", "adv", "update_critic", "update_actor",
                                         "save_checkpoint"),
                         [](const auto& info) { return std::string(info.param); });

/// Any rank in its start.
TEST_F(RunFailure, ARankThatDiesInItsStartIsNamed) {
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::string name = "killed-load-" + std::to_string(rank);
    RunningProgram program = start(name);
    std::optional<RankStatus> victim;
    while (!program.ended() && !(victim && victim->pid > 0)) {
      victim = read_rank_status(folder_ / name / "ranks" / std::to_string(rank));
    }
    ASSERT_TRUE(victim) << program.messages();
    ::kill(victim->pid, SIGKILL);
    EXPECT_EQ(program.wait(6s), 75) << program.messages();
    EXPECT_NE(program.messages().find("lost rank " + std::to_string(rank) + " in phase load"),
              std::string::npos)
        << program.messages();
    for (const RankStatus& each : read_rank_statuses(folder_ / name)) {
      EXPECT_FALSE(is_alive(each.pid)) << "rank " << each.rank;
    }
  }
}

/// The parent, or the launcher between it and the ranks, is killed: nobody is left within 10 s.
TEST_F(RunFailure, NobodyOutlivesTheParentOrTheLauncher) {
  for (const std::string who : {"parent", "launcher"}) {
    const std::string name = "orphans-" + who;
    RunningProgram program = start(name);
    ASSERT_TRUE(await(name, 0, "", program)) << program.messages();
    const auto ranks = read_rank_statuses(folder_ / name);
    ASSERT_EQ(ranks.size(), static_cast<std::size_t>(kRanks));
    pid_t victim = program.pid();
    if (who == "launcher") {
      const std::string task = "/proc/" + std::to_string(victim);
      std::ifstream(task + "/task/" + std::to_string(victim) + "/children") >> victim;
      ASSERT_NE(victim, program.pid());
    }
    ::kill(victim, SIGKILL);
    const Clock::time_point until = Clock::now() + 10s;
    const auto alive = [&] {
      return std::ranges::any_of(ranks, [](const RankStatus& r) { return is_alive(r.pid); });
    };
    while (alive() && Clock::now() < until) std::this_thread::sleep_for(50ms);
    EXPECT_FALSE(alive()) << who;
    EXPECT_TRUE(who == "parent" || program.wait(10s) == 75) << program.messages();
  }
}

struct StalledIn {
  int rank;
  const char* phase;
};

class StalledRank : public RunFailure, public testing::WithParamInterface<StalledIn> {};

/// SIGSTOP: the rank itself is named, with the phase in which it stands still.
TEST_P(StalledRank, IsNamedItselfWithin15SecondsOfTheLimit) {
  const auto [rank, phase] = GetParam();
  const std::string name = "stalled-" + std::to_string(rank) + "-" + phase;
  RunningProgram program = start(name, {"--set", "actor_rollout_ref.nccl_timeout=6"});
  const auto victim = await(name, rank, phase, program);
  ASSERT_TRUE(victim) << "never in phase " << phase << "\n" << program.messages();
  ::kill(victim->pid, SIGSTOP);
  const auto stands = read_rank_status(folder_ / name / "ranks" / std::to_string(rank));
  EXPECT_EQ(program.wait(21s), 75) << program.messages();
  EXPECT_NE(program.messages().find("stalled: rank " + std::to_string(rank) + " in phase " +
                                    stands->phase + " of step " + std::to_string(stands->step)),
            std::string::npos)
      << program.messages();
  EXPECT_NE(program.messages().find("no sign of life for"), std::string::npos);
  expect_no_orphan(name);
}

INSTANTIATE_TEST_SUITE_P(RanksAndPhases, StalledRank,
                         testing::Values(StalledIn{0, "gen"}, StalledIn{1, "gen"},
                                         StalledIn{2, "update_actor"}, StalledIn{3, "update_actor"},
                                         StalledIn{0, "old_log_prob"},
                                         StalledIn{1, "update_critic"}, StalledIn{2, "reshard"},
                                         StalledIn{3, "values"}),
                         [](const auto& info) {
                           return std::string(info.param.phase) + std::to_string(info.param.rank);
                         });

/// With --restarts the run ends as if nobody had killed a rank, its model bit for bit.
TEST_F(RunFailure, ARunThatMayRestartGoesOnFromItsNewestCheckpoint) {
  const std::vector<std::string> short_run = {"--set", "trainer.total_training_steps=6", "--set",
                                              "trainer.save_freq=2"};
  RunningProgram whole = start("whole", short_run);
  ASSERT_EQ(whole.wait(180s), 0) << whole.messages();
  std::vector<std::string> more = short_run;
  more.insert(more.end(), {"--restarts", "2"});
  RunningProgram program = start("restarted", more);
  for (int life = 1; life <= 2; ++life) {
    std::optional<RankStatus> victim;
    for (int look = 0; look < 6000 && !program.ended(); ++look, std::this_thread::sleep_for(10ms)) {
      victim = read_rank_status(folder_ / "restarted/ranks/3");
      if (victim && victim->step >= 2 * life + 1 && is_alive(victim->pid)) break;
    }
    ASSERT_TRUE(victim);
    ::kill(victim->pid, SIGKILL);
  }
  ASSERT_EQ(program.wait(180s), 0) << program.messages();
  EXPECT_NE(program.messages().find("run: restart 2 of 2, from the newest checkpoint"),
            std::string::npos)
      << program.messages();
  EXPECT_TRUE(text_of(folder_ / "restarted/hf/model.safetensors") ==
              text_of(folder_ / "whole/hf/model.safetensors"));
  EXPECT_TRUE(text_of(folder_ / "restarted/samples.jsonl") ==
              text_of(folder_ / "whole/samples.jsonl"));
}

/// With --elastic the run goes on from its newest checkpoint without the rank that was lost, under
/// another layout: its numbers are those of the run that nobody killed, but for rounding.
TEST_F(RunFailure, AnElasticRunGoesOnWithTheRanksThatAreLeft) {
  const std::vector<std::string> short_run = {"--set", "trainer.total_training_steps=6", "--set",
                                              "trainer.save_freq=2"};
  RunningProgram whole = start("inelastic", short_run);
  ASSERT_EQ(whole.wait(180s), 0) << whole.messages();
  std::vector<std::string> more = short_run;
  more.insert(more.end(), {"--restarts", "1", "--elastic"});
  RunningProgram program = start("elastic", more);
  std::optional<RankStatus> victim;
  for (int look = 0; look < 6000 && !program.ended(); ++look, std::this_thread::sleep_for(10ms)) {
    victim = read_rank_status(folder_ / "elastic/ranks/2");
    if (victim && victim->step >= 4 && is_alive(victim->pid)) break;
  }
  ASSERT_TRUE(victim);
  ::kill(victim->pid, SIGKILL);
  ASSERT_EQ(program.wait(180s), 0) << program.messages();
  EXPECT_NE(program.messages().find("lost rank 2"), std::string::npos);
  EXPECT_NE(program.messages().find("planned again for 1 x "), std::string::npos);
  EXPECT_NE(program.messages().find("run: restart 1 of 1, from the newest checkpoint"),
            std::string::npos)
      << program.messages();
  EXPECT_LT(read_rank_statuses(folder_ / "elastic").size(), 4U);
  EXPECT_TRUE(text_of(folder_ / "elastic/plan-1.json") == text_of(folder_ / "inelastic/plan.json"));
  Problems problems;
  const auto got = read_metrics(folder_ / "elastic/metrics.jsonl", problems),
             want = read_metrics(folder_ / "inelastic/metrics.jsonl", problems);
  ASSERT_TRUE(got && want);
  ASSERT_EQ(got->size(), 6U);
  const auto first_plan = got->front().data.at("plan/number");
  EXPECT_EQ(first_plan, want->front().data.at("plan/number"));
  EXPECT_NE(first_plan, got->back().data.at("plan/number"));
  EXPECT_EQ(want->back().data.at("training/steps_since_start"), 6);
  const auto starts = std::count_if(got->begin(), got->end(), [](const StepNumbers& step) {
    return step.data.at("training/steps_since_start") == 1;
  });
  EXPECT_EQ(starts, 2);
  for (std::size_t k = 0; k < 6; ++k) {
    for (const char* key : {"actor/pg_loss", "critic/vf_loss", "critic/score/mean"}) {
      EXPECT_NEAR((*got)[k].data.at(key), (*want)[k].data.at(key), 1e-5) << key << " " << k + 1;
    }
  }
}

/// Without restarts left the run ends as it always did.
TEST_F(RunFailure, RestartsAreCounted) {
  RunningProgram program = start("counted", {"--restarts", "1"});
  int last = 0;
  for (int life = 1; life <= 2; ++life) {
    auto victim = await("counted", 1, "", program);
    while (victim && victim->pid == last) victim = await("counted", 1, "", program);
    ASSERT_TRUE(victim) << program.messages();
    last = victim->pid;
    ::kill(last, SIGKILL);
  }
  EXPECT_EQ(program.wait(60s), 75) << program.messages();
  EXPECT_NE(program.messages().find("run: restart 1 of 1, from the beginning"), std::string::npos);
}

/// Who asked the run to stop does not want it again, although a rank dies before it has stopped.
TEST_F(RunFailure, ARunThatWasAskedToStopIsNotRestarted) {
  RunningProgram program = start("unwanted", {"--restarts", "3"});
  const auto victim = await("unwanted", 1, "", program, 1);
  ASSERT_TRUE(victim) << program.messages();
  ::kill(victim->pid, SIGSTOP);  // until then no rank can stop
  EXPECT_EQ(run("signal " + at("unwanted") + " stop"), 0);
  ::kill(victim->pid, SIGKILL);
  EXPECT_EQ(program.wait(60s), 130) << program.messages();
  EXPECT_EQ(program.messages().find("restart"), std::string::npos) << program.messages();
}

/// The files of killed ranks say for ever that they run: nobody is there to hear a signal.
TEST_F(RunFailure, ARunThatWasKilledIsToldNothing) {
  RunningProgram program = start("gone");
  ASSERT_TRUE(await("gone", 0, "", program, 1)) << program.messages();
  const std::vector<RankStatus> ranks = read_rank_statuses(folder_ / "gone");
  for (const RankStatus& rank : ranks) ::kill(rank.pid, SIGKILL);
  EXPECT_EQ(program.wait(60s), 75) << program.messages();
  EXPECT_EQ(run("signal " + at("gone") + " stop"), 65);
  EXPECT_FALSE(fs::exists(folder_ / "gone/stop"));
}

TEST_F(RunFailure, AnInterruptEndsTheRunBetweenPhasesWithItsModelSaved) {
  RunningProgram program = start("interrupted");
  ASSERT_TRUE(await("interrupted", 0, "", program)) << program.messages();
  ::kill(program.pid(), SIGINT);
  EXPECT_EQ(program.wait(10s), 130) << program.messages();
  EXPECT_NE(program.messages().find("stopped by the user"), std::string::npos);
  EXPECT_EQ(program.messages().find("killed"), std::string::npos) << program.messages();
  for (const RankStatus& rank : read_rank_statuses(folder_ / "interrupted")) {
    EXPECT_EQ(rank.state, RankState::finished);
    EXPECT_EQ(rank.exit_code, 130);
  }
  expect_no_orphan("interrupted");
  EXPECT_TRUE(fs::exists(folder_ / "interrupted/hf/model.safetensors"));
  EXPECT_TRUE(fs::exists(folder_ / "interrupted/trace.json"));
}

}  // namespace
}  // namespace tessera
