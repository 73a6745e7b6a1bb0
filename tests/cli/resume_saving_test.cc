// When checkpoints are written beside every so many steps, and when they cannot be: signals,
// folders that are none, full disks.
#include <gmock/gmock.h>

#include <signal.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "simulator/timeline/rank_status.h"
#include "tests/cli/resume.h"

namespace tessera {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// Waits until the run has finished `step` steps.
bool await_step(const fs::path& run, std::int64_t step) {
  for (int i = 0; i < 6000; ++i) {
    const auto status = read_rank_status(run / "ranks/0");
    if (status && status->step > step) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

/// Every signal that asks a run to end leaves a checkpoint of its last whole step behind.
TEST_F(Resume, SignalsSaveAndEndWithTheirCodes) {
  for (const auto& [signal, code] :
       {std::pair(SIGINT, 130), std::pair(SIGTERM, 130), std::pair(SIGUSR1, 138)}) {
    const std::string name = "signal-" + std::to_string(signal);
    const pid_t pid = ::fork();
    if (pid == 0) {
      const std::string line =
          "exec " + kTessera + " " + words(name, 100000, "ppo.json") + " >/dev/null 2>&1";
      ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      ::_exit(127);
    }
    ASSERT_TRUE(await_step(folder_ / name, 2));
    ::kill(pid, signal);
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, code);
    const auto steps = metrics(name);
    ASSERT_FALSE(steps.empty());
    const int last = static_cast<int>(steps.back().step);
    EXPECT_TRUE(fs::exists(checkpoint(name, last) / "checkpoint.json")) << last;
    // With the learning rate, by which a run that goes on tells whether its schedule jumps.
    const auto saved = nlohmann::json::parse(text_of(checkpoint(name, last) / "checkpoint.json"));
    EXPECT_EQ(saved.at("metrics").at("actor/lr"), steps.back().data.at("actor/lr"));
    EXPECT_EQ(fs::exists(folder_ / name / "hf"), code == 130);
    // It goes on, and is the run that nobody stopped.
    ASSERT_EQ(train_ppo(name, std::max(6, last), "--resume"), 0) << messages();
    EXPECT_THAT(messages(), HasSubstr("[Resume] from step " + std::to_string(last)));
    const std::string samples = text_of(folder_ / name / "samples.jsonl");
    const std::string wanted = text_of(folder_ / whole() / "samples.jsonl");
    EXPECT_TRUE(samples.substr(0, wanted.size()) == wanted);
  }
}

/// Where the launcher is the only parent `tessera signal` and its SIGTERM are enough.
TEST_F(Resume, ABareLaunchersRanksSaveWhenAskedAndGoOnLater) {
  std::ofstream(at("bare.yaml")) << "version: 1\ndata: {train_files: " << at("prompts.jsonl")
                                 << "}\nalgorithm: {adv_estimator: gae}\n"
                                    "trainer: {total_training_steps: 100000, seed: 1, "
                                    "resume_mode: auto}\n";
  const std::string line =
      "mpirun --quiet --allow-run-as-root --oversubscribe --bind-to none "
      "--mca mpi_yield_when_idle 1 -n 4 " TESSERA_BINARY_DIR "/executor/tessera-run train " +
      at("ppo.json") + " --config " + at("bare.yaml") + " --device cpu -o " + at("bare") + " >" +
      at("messages") + " 2>&1";
  const auto run_until = [&](std::int64_t step, const std::string& signal, int code) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::setenv("OMP_NUM_THREADS", "1", 1);
      ::execl("/bin/sh", "sh", "-c", ("exec " + line).c_str(), nullptr);
      ::_exit(127);
    }
    EXPECT_TRUE(await_step(folder_ / "bare", step)) << messages();
    if (!signal.empty()) {
      EXPECT_EQ(run("signal " + at("bare") + " " + signal), 0);
    } else {
      for (const RankStatus& rank : read_rank_statuses(folder_ / "bare")) ::kill(rank.pid, SIGTERM);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, code) << messages();
    return metrics("bare").back().step;
  };
  const std::int64_t first = run_until(2, "requeue", 138);
  EXPECT_TRUE(fs::exists(checkpoint("bare", static_cast<int>(first)) / "checkpoint.json"));
  fs::remove_all(folder_ / "bare/ranks");
  EXPECT_GT(run_until(first + 1, "", 130), first) << "what was asked before is forgotten";
  EXPECT_THAT(messages(), HasSubstr("[Resume] from step " + std::to_string(first)));
}

/// Every step that the run's words name before `words` is named there once.
void expect_once_each(const std::string& said, const std::string& words) {
  std::set<std::string> steps;
  for (std::size_t at = said.find(words); at != said.npos; at = said.find(words, at + 1)) {
    const std::size_t step = said.rfind("step ", at);
    EXPECT_TRUE(steps.insert(said.substr(step, at - step)).second) << said;
  }
  EXPECT_FALSE(steps.empty()) << said;
}

/// A folder of checkpoints that cannot be made: the run says so after every save, and ends well.
TEST_F(Resume, WhatCannotBeSavedNeverEndsARun) {
  fs::create_directory(folder_ / "full");
  std::ofstream(at("full/checkpoints")) << "not a folder";
  fs::create_symlink("/dev/full", folder_ / "full/samples.jsonl");
  fs::create_symlink("/dev/full", folder_ / "full/trace.json");
  ASSERT_EQ(train_ppo("full", 3, "--set trainer.save_freq=1 --resume"), 0) << messages();
  EXPECT_THAT(messages(), HasSubstr("[Checkpoint] step 1 was not saved, the run goes on"));
  EXPECT_THAT(messages(), HasSubstr("[Checkpoint] step 3 was not saved"));
  EXPECT_THAT(messages(), HasSubstr("samples.jsonl cannot be written: No space left on device"));
  EXPECT_THAT(messages(), HasSubstr("trace.json: cannot write: No space left on device; the run"));
  ASSERT_EQ(metrics("full").size(), 3U);
  EXPECT_EQ(metrics("full")[1].data.at("checkpoint/failed"), 1);
  EXPECT_TRUE(fs::exists(folder_ / "full/hf/model.safetensors"));
}

/// A file system of 6 MB, where two checkpoints fit: the others are refused before they fill it.
TEST_F(Resume, AFullDiskCostsTheCheckpointsThatDoNotFit) {
  if (std::system("unshare -rm true 2>/dev/null") != 0) GTEST_SKIP() << "no mount namespaces here";
  fs::create_directory(folder_ / "disk");
  std::ofstream(at("disk.sh")) << "mount -t tmpfs -o size=6m tmpfs " << at("disk") << "\n"
                               << kTessera << " " << words("disk/run", 4, "ppo.json")
                               << "--set trainer.save_freq=1\ncode=$?\ncp -a " << at("disk/run")
                               << " " << at("from-disk") << "\nexit $code\n";
  const std::string line = "unshare -rm sh " + at("disk.sh") + " >" + at("messages") + " 2>&1";
  ASSERT_EQ(std::system(line.c_str()), 0) << messages();
  EXPECT_EQ(metrics("from-disk").size(), 4U);
  EXPECT_THAT(messages(), HasSubstr("[Checkpoint] step 3 was not saved, the run goes on"));
  EXPECT_THAT(messages(), HasSubstr("bytes free"));
  EXPECT_TRUE(fs::exists(folder_ / "from-disk/hf/model.safetensors"));
  ASSERT_TRUE(fs::exists(checkpoint("from-disk", 2)));
  EXPECT_FALSE(fs::exists(checkpoint("from-disk", 3)));
  ASSERT_EQ(train_ppo("from-disk", 6, "--resume"), 0) << messages();
  EXPECT_THAT(messages(), HasSubstr("[Resume] from step 2"));
  expect_same_file(folder_ / "from-disk/hf/model.safetensors",
                   folder_ / whole() / "hf/model.safetensors");
}

/// The disk has no room for what a run is asked to save when it is stopped: its code says that it
/// is not saved, and its words which step is.
TEST_F(Resume, ARunThatCannotSaveWhereItIsStoppedSaysSo) {
  if (std::system("unshare -rm true 2>/dev/null") != 0) GTEST_SKIP() << "no mount namespaces here";
  fs::create_directory(folder_ / "small");
  for (const char* signal : {"USR1", "TERM"}) {
    std::ofstream(at("small.sh")) << "mount -t tmpfs -o size=6m tmpfs " << at("small") << "\ncd "
                                  << at("small") << "\n"
                                  << kTessera << " " << words("small/run", 500, "ppo.json")
                                  << "--set trainer.save_freq=1 &\nrun=$!\n"
                                     "await() { for i in $(seq 600); do \"$@\" && return; sleep "
                                     "0.1; done; kill $run; exit 9; "
                                     "}\n"
                                     "await grep -q 'step 3 was not saved' "
                                  << at("messages") << "\nkill -" << signal
                                  << " $run\nwait $run\nexit $?\n";
    const std::string line = "unshare -rm sh " + at("small.sh") + " >" + at("messages") + " 2>&1";
    const int status = std::system(line.c_str());
    EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, static_cast<int>(ExitCode::io))
        << messages();
    EXPECT_THAT(messages(), HasSubstr(" is not saved; the newest checkpoint is of step 2\n"));
    expect_once_each(messages(), " was not saved, the run goes on");
    EXPECT_THAT(messages(), testing::Not(HasSubstr("saved, to be queued again")));
  }
}

/// Somebody else fills the disk: checkpoints that are due are told as not saved, and the last one,
/// when the run is stopped, takes the room that was kept for it.
TEST_F(Resume, TheLastCheckpointHasRoomOnADiskThatOthersFill) {
  if (std::system("unshare -rm true 2>/dev/null") != 0) GTEST_SKIP() << "no mount namespaces here";
  fs::create_directory(folder_ / "filled");
  std::ofstream(at("filled.sh"))
      << "mount -t tmpfs -o size=24m tmpfs " << at("filled") << "\ncd " << at("filled") << "\n"
      << kTessera << " " << words("filled/run", 500, "ppo.json")
      << "--set trainer.save_freq=1 --set trainer.max_actor_ckpt_to_keep=1 &\nrun=$!\n"
         "await() { for i in $(seq 600); do \"$@\" && return; sleep 0.1; done; kill $run; exit 9; "
         "}\n"
         "await test -s run/checkpoints/.reserve\n"  // whole: its size comes with its room
         "cat /dev/zero > others\n"
         "await grep -q 'was not saved' "
      << at("messages") << "\nkill -TERM $run\nwait $run\ncode=$?\ncp -a run " << at("from-filled")
      << "\nexit $code\n";
  const std::string line = "unshare -rm sh " + at("filled.sh") + " >" + at("messages") + " 2>&1";
  const int status = std::system(line.c_str());
  ASSERT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 130) << messages();
  const std::string said = messages();
  const int refused = std::stoi(said.substr(said.rfind("step ", said.find(" was not saved")) + 5));
  EXPECT_TRUE(fs::exists(folder_ / "from-filled/hf/model.safetensors"));
  EXPECT_FALSE(fs::exists(folder_ / "from-filled/checkpoints/.reserve"));
  const std::string name = "global_step_";
  int newest = 0;
  for (const auto& entry : fs::directory_iterator(folder_ / "from-filled/checkpoints")) {
    newest = std::max(newest, std::stoi(entry.path().filename().string().substr(name.size())));
  }
  EXPECT_GE(newest, refused) << said;
  ASSERT_EQ(train_ppo("from-filled", newest + 1, "--resume"), 0) << messages();
  EXPECT_THAT(messages(), HasSubstr("[Resume] from step " + std::to_string(newest)));
}

}  // namespace
}  // namespace tessera
