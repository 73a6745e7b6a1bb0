// Runs that go on from their checkpoints: bit for bit, in other layouts, after every kind of end.
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "simulator/timeline/rank_status.h"
#include "tests/cli/programs.h"

namespace tessera {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class Resume : public ProgramTest {
 protected:
  static void SetUpTestSuite() {
    ProgramTest::SetUpTestSuite();
    std::ofstream(at("ppo.yaml")) << "version: 1\nalgorithm: ppo\nprompts_per_step: 16\n"
                                     "samples_per_prompt: 4\nprompt_tokens: 8\n"
                                     "response_tokens: {mean: 4, cv: 0, max: 4}\n"
                                     "mini_batches: 2\nepochs: 1\nkl: reward\n";
    std::string two = text_of(TESSERA_SOURCE_DIR "/configs/clusters/local-cpu.yaml");
    const std::string four = "gpus_per_node: 4";
    ASSERT_NE(two.find(four), std::string::npos);
    two.replace(two.find(four), four.size(), "gpus_per_node: 2");
    std::ofstream(at("two.yaml")) << two;
    plan("ppo.json", "actor.tp=2 actor.pp=2 critic.tp=2 critic.pp=2 rollout.tp=2 rollout.dp=2");
    plan("fsdp.json",
         "actor.tp=1 actor.pp=1 actor.zero=3 critic.tp=1 critic.pp=1 critic.zero=3 "
         "rollout.tp=2 rollout.dp=2");
    plan("zero1.json",
         "actor.tp=2 actor.pp=1 actor.zero=1 critic.tp=1 critic.pp=1 critic.zero=1 "
         "rollout.tp=2 rollout.dp=2");
    plan("two.json",
         "actor.tp=1 actor.pp=1 actor.zero=0 critic.tp=2 critic.pp=1 "
         "rollout.tp=1 rollout.dp=2");
  }
  static void plan(const std::string& name, const std::string& fixed) {
    const std::string cluster = name == "two.json" ? at("two.yaml") : "local-cpu";
    ASSERT_EQ(run("plan --model " + at("model") + " --cluster " + cluster + " --workload " +
                  at("ppo.yaml") + " --fix placement=colocated " + fixed + " -o " + at(name)),
              0)
        << name;
  }

  /// Words of a PPO run with an adaptive divergence in the reward, all that a checkpoint holds.
  static std::string words(const std::string& name, int steps, const std::string& plan_file) {
    return "run " + at(plan_file) + " --config ppo-digits --set 'data.train_files=[" +
           at("prompts.jsonl") + "]' --set algorithm.kl_ctrl.type=adaptive" +
           " --set algorithm.kl_ctrl.horizon=200 --set trainer.total_training_steps=" +
           std::to_string(steps) + " -o " + at(name) + " ";
  }

  static int train_ppo(const std::string& name, int steps, const std::string& more = "",
                       const std::string& plan_file = "ppo.json") {
    const std::string line =
        kTessera + " " + words(name, steps, plan_file) + more + " >" + at("messages") + " 2>&1";
    const int status = std::system(line.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  static std::string messages() { return text_of(at("messages")); }

  static fs::path checkpoint(const std::string& name, int step) {
    return folder_ / name / "checkpoints" / ("global_step_" + std::to_string(step));
  }
  static std::vector<StepNumbers> metrics(const std::string& name) {
    Problems problems;
    auto read = read_metrics(folder_ / name / "metrics.jsonl", problems);
    return read ? *read : std::vector<StepNumbers>{};
  }
  static void copy(const std::string& from, const std::string& to) {
    fs::copy(folder_ / from, folder_ / to, fs::copy_options::recursive);
  }

  /// A run of six steps with checkpoints after every second, made once.
  static const std::string& whole() {
    static const std::string name = [] {
      EXPECT_EQ(train_ppo("whole", 6, "--set trainer.save_freq=2"), 0) << messages();
      return std::string("whole");
    }();
    return name;
  }
  /// The same up to its step 4, as a folder of its own.
  static void half(const std::string& name) {
    copy(whole(), name);
    fs::remove_all(checkpoint(name, 6));
    fs::remove_all(folder_ / name / "hf");
  }

  static void expect_same_file(const fs::path& a, const fs::path& b) {
    EXPECT_TRUE(text_of(a) == text_of(b)) << a << " differs from " << b;
  }

  static void expect_same_numbers(const std::string& name, int first, double tolerance) {
    const auto got = metrics(name), want = metrics(whole());
    ASSERT_EQ(want.size(), 6U);
    ASSERT_FALSE(got.empty());
    EXPECT_EQ(got.back().step, 6);
    for (const StepNumbers& step : got) {
      if (step.step < first) continue;
      for (const char* key : {"actor/pg_loss", "critic/vf_loss", "actor/reward_kl_penalty_coeff",
                              "critic/score/mean"}) {
        const double wanted = want[static_cast<std::size_t>(step.step - 1)].data.at(key);
        EXPECT_NEAR(step.data.at(key), wanted, tolerance) << key << " of step " << step.step;
      }
    }
  }
};

/// Steps 5 and 6 of a resumed run are those of the run that was never interrupted: samples, actor,
/// critic, both optimizers, the controller and torch's generators.
TEST_F(Resume, TheSameLayoutGoesOnBitForBit) {
  half("bits");
  ASSERT_EQ(train_ppo("bits", 6, "--set trainer.save_freq=2 --resume"), 0) << messages();
  EXPECT_THAT(messages(), HasSubstr("[Resume] from step 4"));
  expect_same_file(folder_ / "bits/samples.jsonl", folder_ / whole() / "samples.jsonl");
  expect_same_file(folder_ / "bits/hf/model.safetensors",
                   folder_ / whole() / "hf/model.safetensors");
  for (int rank = 0; rank < 4; ++rank) {
    const std::string file = "rank_0000" + std::to_string(rank) + ".safetensors";
    expect_same_file(checkpoint("bits", 6) / file, checkpoint("whole", 6) / file);
  }
  ASSERT_EQ(metrics("bits").size(), 6U) << "no step is written twice";
  expect_same_numbers("bits", 1, 0);
}

/// Twenty steps at once, and ten that another process goes on from.
TEST_F(Resume, TwentyStepsAreTenAndTen) {
  ASSERT_EQ(train_ppo("twenty", 20), 0) << messages();
  ASSERT_EQ(train_ppo("ten", 10, "--set trainer.save_freq=10"), 0) << messages();
  ASSERT_EQ(train_ppo("ten", 20, "--set trainer.save_freq=10 --resume"), 0) << messages();
  EXPECT_THAT(messages(), HasSubstr("[Resume] from step 10"));
  expect_same_file(folder_ / "ten/samples.jsonl", folder_ / "twenty/samples.jsonl");
  expect_same_file(folder_ / "ten/hf/model.safetensors", folder_ / "twenty/hf/model.safetensors");
}

/// A filter of groups takes further prompts: where the source stands is no longer the step's
/// number.
TEST_F(Resume, FilteredGroupsGoOnAfterThePromptsThatWereTaken) {
  const std::string filter =
      "--set trainer.save_freq=2 --set algorithm.filter_groups.enable=true "
      "--set algorithm.filter_groups.metric=acc ";
  ASSERT_EQ(train_ppo("filtered", 4, filter), 0) << messages();
  EXPECT_GT(metrics("filtered").front().data.at("training/num_gen_batches"), 1);
  copy("filtered", "filtered_on");
  fs::remove_all(checkpoint("filtered_on", 4));
  ASSERT_EQ(train_ppo("filtered_on", 4, filter + "--resume"), 0) << messages();
  EXPECT_THAT(messages(), HasSubstr("[Resume] from step 2"));
  expect_same_file(folder_ / "filtered_on/samples.jsonl", folder_ / "filtered/samples.jsonl");
  expect_same_file(folder_ / "filtered_on/hf/model.safetensors",
                   folder_ / "filtered/hf/model.safetensors");
}

/// TP2 x PP2 -> FSDP4 -> ZeRO-1 -> two ranks, each on from the one before.
TEST_F(Resume, OtherLayoutsAndRankCountsDifferByRoundingAlone) {
  half("moved");
  fs::remove_all(checkpoint("moved", 4));
  ASSERT_EQ(train_ppo("moved", 4, "--set trainer.save_freq=1 --resume", "fsdp.json"), 0)
      << messages();
  EXPECT_THAT(messages(), HasSubstr("[Resume] from step 2"));
  ASSERT_EQ(train_ppo("moved", 5, "--set trainer.save_freq=1 --resume", "zero1.json"), 0)
      << messages();
  EXPECT_THAT(messages(), HasSubstr("[Resume] from step 4"));
  ASSERT_EQ(train_ppo("moved", 6, "--set trainer.save_freq=1 --resume", "two.json"), 0)
      << messages();
  EXPECT_THAT(messages(), HasSubstr("[Resume] from step 5"));
  ASSERT_EQ(metrics("moved").size(), 6U);
  expect_same_numbers("moved", 3, 1e-6);
}

TEST_F(Resume, APathOfAnotherRunBeginsANewFolder) {
  ASSERT_EQ(train_ppo("from", 6,
                      "--set trainer.resume_mode=resume_path --set "
                      "trainer.resume_from_path=" +
                          checkpoint(whole(), 4).string()),
            0)
      << messages();
  ASSERT_EQ(metrics("from").size(), 2U);
  expect_same_numbers("from", 5, 0);
  const auto refused = [&](const std::string& path) {
    EXPECT_EQ(train_ppo("nowhere", 6,
                        "--set trainer.resume_mode=resume_path --set "
                        "trainer.resume_from_path=" +
                            path),
              65);
    EXPECT_FALSE(fs::exists(folder_ / "nowhere"));
    return messages();
  };
  EXPECT_THAT(refused(at("model")), HasSubstr("found no checkpoint"));
}

/// `auto` takes the one before a damaged checkpoint, and says which file was what; where none is
/// left the run is refused, and nothing begins anew.
TEST_F(Resume, ADamagedCheckpointIsNamedAndTheOneBeforeIsTaken) {
  half("damaged");
  const fs::path file = checkpoint("damaged", 4) / "rank_00002.safetensors";
  std::string bytes = text_of(file);
  bytes[bytes.size() - 9000] ^= 1;
  std::ofstream(file, std::ios::binary) << bytes;
  ASSERT_EQ(train_ppo("damaged", 6, "--resume"), 0) << messages();
  EXPECT_THAT(messages(), HasSubstr("[Resume] not from "));
  EXPECT_THAT(messages(), HasSubstr("rank_00002.safetensors:"));
  EXPECT_THAT(messages(), HasSubstr("xxh3"));
  EXPECT_THAT(messages(), HasSubstr("[Resume] from step 2"));
  expect_same_file(folder_ / "damaged/hf/model.safetensors",
                   folder_ / whole() / "hf/model.safetensors");

  half("broken");
  for (const int step : {2, 4}) {
    fs::resize_file(checkpoint("broken", step) / "rank_00001.safetensors", 1000);
  }
  EXPECT_EQ(train_ppo("broken", 6, "--resume"), 65);
  EXPECT_THAT(messages(), HasSubstr("rank_00001.safetensors: found 1000 bytes, expected "));
  EXPECT_EQ(metrics("broken").size(), 6U) << "what the run had written is as it was";
}

TEST_F(Resume, AFolderIsTakenOnlyByAskingAndByOneRunAtATime) {
  half("asked");
  EXPECT_EQ(train_ppo("asked", 6), 65);
  EXPECT_THAT(messages(), HasSubstr("--resume goes on in it"));
  std::system(("exec 9>" + at("asked/run.lock") + "; flock 9; echo process 7 on box >&9; " +
               kTessera + " " + words("asked", 6, "ppo.json") + " --resume >" + at("messages") +
               " 2>&1")
                  .c_str());
  EXPECT_THAT(messages(), HasSubstr("found locked by process 7 on box"));
  EXPECT_THAT(messages(), HasSubstr("expected no other run in this folder"));
  EXPECT_TRUE(fs::exists(checkpoint("asked", 4)));
  EXPECT_EQ(run("run " + at("ppo.json") + " --config ppo-digits --resume"), 64);
}

/// The oracle reads every file with safetensors' own reader, puts the pieces together and compares
/// the master weights with the model that transformers loads from the run's end.
TEST_F(Resume, SafetensorsAndTransformersReadWhatTheRunHeld) {
  const std::string python = TESSERA_SOURCE_DIR "/.venv/bin/python3";
  if (!fs::exists(python)) GTEST_SKIP() << "no " << python;
  const std::string line = "HF_HUB_OFFLINE=1 " + python +
                           " " TESSERA_SOURCE_DIR "/tests/cli/checkpoint_oracle.py " +
                           checkpoint(whole(), 6).string() + " " + at("whole/hf");
  EXPECT_EQ(std::system(line.c_str()), 0);
}

TEST_F(Resume, OldCheckpointsGoAndModelsAreExported) {
  ASSERT_EQ(train_ppo("kept", 5,
                      "--set trainer.save_freq=1 --set trainer.max_actor_ckpt_to_keep=2 "
                      "--set trainer.hf_save_freq=2"),
            0)
      << messages();
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_ / "kept/checkpoints")) {
    names.push_back(entry.path().filename());
  }
  EXPECT_THAT(names, testing::UnorderedElementsAre("global_step_4", "global_step_5"));
  EXPECT_TRUE(fs::exists(folder_ / "kept/hf_steps/global_step_2/model.safetensors"));
  EXPECT_TRUE(fs::exists(folder_ / "kept/hf_steps/global_step_4/config.json"));
  bool written = false;
  for (const StepNumbers& step : metrics("kept")) {
    EXPECT_TRUE(step.data.contains("timing_s/save_checkpoint")) << step.step;
    written = written || step.data.contains("checkpoint/write_s");
  }
  EXPECT_TRUE(written);
}

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
         "await test -e run/checkpoints/.reserve\n"
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

/// All ranks die at once, again and again, wherever they are; what is left always loads, and the
/// run that is left alone in the end has the bits of one that never died.
TEST_F(Resume, KilledAgainAndAgainItEndsAsIfItHadNot) {
  const std::string line = "python3 " TESSERA_SOURCE_DIR
                           "/scripts/kill_and_resume.py --kills 6 --seed 5 --run " +
                           at("killed") + " -- " + kTessera + " run " + at("ppo.json") +
                           " --config ppo-digits --set 'data.train_files=[" + at("prompts.jsonl") +
                           "]' >" + at("messages") + " 2>&1";
  EXPECT_EQ(std::system(line.c_str()), 0) << messages();
}

}  // namespace
}  // namespace tessera
