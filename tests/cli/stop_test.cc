// A run that is asked to stop in its first moments: before it has read its files, while they are
// looked at, while ranks start, while they load. It ends with its code and leaves nothing half
// done.
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "simulator/timeline/rank_status.h"
#include "tests/cli/programs.h"
#include "tests/cli/running_program.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// The signals that a process has handlers for, as the kernel says (proc(5)).
std::uint64_t caught_by(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("SigCgt:")) return std::stoull(line.substr(7), nullptr, 16);
  }
  return 0;
}

/// Waits for the first moment of the main function: whatever came before is the loader's.
void await_main(RunningProgram& program) {
  const std::uint64_t wanted = 1ULL << (SIGTERM - 1);
  const Clock::time_point until = Clock::now() + 20s;
  while ((caught_by(program.pid()) & wanted) == 0 && !program.ended() && Clock::now() < until) {
  }
}

/// Processes with this word among their arguments.
std::vector<pid_t> processes_with(const std::string& word) {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid > 0 && is_alive(pid) &&
        text_of(entry.path() / "cmdline").find(word) != std::string::npos)
      found.push_back(pid);
  }
  return found;
}

struct Asked {
  int signal, code;
};

constexpr Asked kSignals[] = {{SIGTERM, 130}, {SIGUSR1, 138}, {SIGINT, 130}, {SIGHUP, 130}};
constexpr int kSignalCount = std::size(kSignals);

/// What a run has begun with: its main function, or its ranks.
enum class Since { main, ranks };

class Stop : public ProgramTest {
 protected:
  static std::vector<std::string> words(const std::string& name) {
    return {kTessera,
            "run",
            at("plan.json"),
            "--config",
            "grpo-digits",
            "--set",
            "data.train_files=[" + at("prompts.jsonl") + "]",
            "--set",
            "trainer.total_training_steps=100000",
            "-o",
            at(name)};
  }

  /// Either the run had not begun, and there is no folder, or what it has saved is whole.
  static void expect_in_order(const std::string& name) {
    EXPECT_THAT(processes_with(at(name)), testing::IsEmpty());
    const fs::path folder = folder_ / name;
    if (!fs::exists(folder)) return;
    if (fs::exists(folder / "checkpoints")) {  // not before a first step
      for (const auto& entry : fs::directory_iterator(folder / "checkpoints")) {
        EXPECT_TRUE(fs::exists(entry.path() / "checkpoint.json")) << entry.path();
      }
    }
    for (const RankStatus& rank : read_rank_statuses(folder)) {
      EXPECT_EQ(rank.state, RankState::finished);
    }
  }

  /// Waits for what comes with the ranks: the launcher is started behind this line.
  static void await_ranks(RunningProgram& program) {
    const Clock::time_point until = Clock::now() + 60s;
    while (program.messages().find("CPU ranks") == std::string::npos && !program.ended() &&
           Clock::now() < until) {
      std::this_thread::sleep_for(1ms);
    }
  }

  static void stop_at(Since since, int milliseconds, const Asked& asked) {
    const std::string name = "stop-" + std::to_string(stopped_++) + "-end";
    RunningProgram program(words(name), at(name + ".txt"));
    await_main(program);
    if (since == Since::ranks) await_ranks(program);
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    ASSERT_EQ(::kill(program.pid(), asked.signal), 0);
    EXPECT_EQ(program.wait(180s), asked.code)
        << milliseconds << " ms, signal " << asked.signal << "\n"
        << program.messages();
    expect_in_order(name);
    if (since == Since::ranks) {
      EXPECT_EQ(fs::exists(folder_ / name / "hf/model.safetensors"), asked.code == 130)
          << program.messages();
    }
    if (since == Since::main && milliseconds == 0) {
      EXPECT_FALSE(fs::exists(folder_ / name));
    }
  }

  inline static int stopped_ = 0;
};

/// While files are read, and while the ranks' program looks at them.
TEST_F(Stop, AtAnyMomentAfterMainTheRunEndsInOrderWithItsCode) {
  for (const int milliseconds :
       {0, 0, 0, 1, 2, 4, 7, 10, 20, 50, 120, 250, 450, 800, 1300, 2000, 3000}) {
    stop_at(Since::main, milliseconds, kSignals[stopped_ % kSignalCount]);
    if (HasFatalFailure()) return;
  }
}

/// While ranks are started, meet and load.
TEST_F(Stop, AtAnyMomentAfterItsRanksTheRunEndsInOrderWithItsCode) {
  for (const int milliseconds : {0, 20, 150, 600, 1500, 3000}) {
    stop_at(Since::ranks, milliseconds, kSignals[stopped_ % kSignalCount]);
    if (HasFatalFailure()) return;
  }
}

/// A terminal that goes away sends SIGHUP more than once: the run is saved, not killed. Under nohup
/// it goes on.
TEST_F(Stop, ATerminalThatIsGoneEndsTheRunSavedAndNotUnderNohup) {
  RunningProgram gone(words("hung-up"), at("hung-up.txt"));
  await_ranks(gone);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(::kill(gone.pid(), SIGHUP), 0);
    std::this_thread::sleep_for(100ms);
  }
  EXPECT_EQ(gone.wait(180s), 130) << gone.messages();
  EXPECT_TRUE(fs::exists(folder_ / "hung-up/hf/model.safetensors")) << gone.messages();

  std::vector<std::string> ignoring = {"/usr/bin/env", "nohup"};
  for (const std::string& word : words("ignoring")) ignoring.push_back(word);
  RunningProgram stays(ignoring, at("ignoring.txt"));
  await_ranks(stays);
  ASSERT_EQ(::kill(stays.pid(), SIGHUP), 0);
  std::this_thread::sleep_for(2s);
  EXPECT_FALSE(stays.ended()) << stays.messages();
  EXPECT_EQ(stays.messages().find("saving and stopping"), std::string::npos);
  ASSERT_EQ(::kill(stays.pid(), SIGTERM), 0);
  EXPECT_EQ(stays.wait(180s), 130) << stays.messages();
}

/// What was there before the run went on in it is there afterwards.
TEST_F(Stop, AFolderThatWasThereStays) {
  const std::string name = "resumed";
  ASSERT_EQ(train(name, 2, "--set trainer.save_freq=1"), 0);
  std::vector<std::string> again = words(name);
  again.emplace_back("--resume");
  RunningProgram program(again, at("resumed.txt"));
  await_main(program);
  ASSERT_EQ(::kill(program.pid(), SIGTERM), 0);
  EXPECT_EQ(program.wait(60s), 130) << program.messages();
  EXPECT_TRUE(fs::exists(folder_ / name / "checkpoints/global_step_2/checkpoint.json"));
  EXPECT_THAT(processes_with(at(name)), testing::IsEmpty());
}

/// Ranks of a bare launcher that are signalled as soon as they can hear it: they have not met yet.
TEST_F(Stop, RanksWithoutAParentEndWithTheCodeBeforeTheRunHasBegun) {
  std::ofstream(at("bare.yaml")) << "version: 1\ndata: {train_files: " << at("prompts.jsonl")
                                 << "}\ntrainer: {total_training_steps: 100000}\n";
  for (const Asked& asked : kSignals) {
    const std::string name = "bare-" + std::to_string(asked.signal) + "-end";
    const std::string trainer = TESSERA_BINARY_DIR "/executor/tessera-run";
    RunningProgram program(
        {"/usr/bin/env", "mpirun", "--quiet", "--allow-run-as-root", "--oversubscribe", "--bind-to",
         "none", "-n", "4", trainer, "train", at("plan.json"), "--config", at("bare.yaml"),
         "--device", "cpu", "-o", at(name)},
        at(name + ".txt"));
    std::set<pid_t> told;
    const Clock::time_point until = Clock::now() + 30s;
    while (told.empty() && !program.ended() && Clock::now() < until) {
      for (const pid_t pid : processes_with(at(name))) {
        // A launcher's child has its words, and its handlers, until it becomes the rank.
        std::error_code gone;
        const fs::path runs = fs::read_symlink("/proc/" + std::to_string(pid) + "/exe", gone);
        if (gone || runs.filename() != "tessera-run") continue;
        if ((caught_by(pid) & 1ULL << (SIGUSR1 - 1)) == 0) continue;
        if (told.insert(pid).second) ::kill(pid, asked.signal);
      }
    }
    EXPECT_FALSE(told.empty());
    EXPECT_EQ(program.wait(30s), asked.code) << program.messages();
    EXPECT_FALSE(fs::exists(folder_ / name));
  }
}

}  // namespace
}  // namespace tessera
