// Runs that go on from their checkpoints: bit for bit, in other layouts, after every kind of end.
#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/resume.h"

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::Not;

/// How often ranks of a run's trace began a phase, by step; and that none of them is in two at
/// once.
std::map<int, int> traced(const fs::path& run, const std::string& phase) {
  const auto events = nlohmann::json::parse(std::ifstream(run / "trace.json")).at("traceEvents");
  std::map<int, int> times;
  std::map<int, double> ends;  // by rank
  for (const auto& event : events) {
    if (event.at("ph") != "X") continue;
    const double start = event.at("ts");
    double& end = ends.try_emplace(event.at("pid"), 0).first->second;
    EXPECT_GE(start, end - 0.002) << event;
    end = start + event.at("dur").get<double>();
    if (event.at("name") == phase) ++times[event.at("args").at("step")];
  }
  return times;
}

/// Six steps in three parts, the last of which has nothing to do: the trace has each of them.
TEST_F(Resume, TheTraceKeepsWhatWasMeasuredBeforeTheStop) {
  const std::map<int, int> all{{1, 4}, {2, 4}, {3, 4}, {4, 4}, {5, 4}, {6, 4}};
  ASSERT_EQ(traced(folder_ / whole(), "gen"), all);
  half("traced");
  fs::remove_all(checkpoint("traced", 4));
  for (const int steps : {4, 6, 6}) {
    ASSERT_EQ(train_ppo("traced", steps, "--set trainer.save_freq=2 --resume"), 0) << messages();
    std::map<int, int> until = all;
    until.erase(until.upper_bound(steps), until.end());
    EXPECT_EQ(traced(folder_ / "traced", "gen"), until);
    EXPECT_EQ(traced(folder_ / "traced", "update_actor").size(), until.size());
  }
}

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
  EXPECT_THAT(messages(), Not(HasSubstr("steps are done")));
  const std::string before = text_of(folder_ / "bits/metrics.jsonl");
  ASSERT_EQ(train_ppo("bits", 6, "--set trainer.save_freq=2 --resume"), 0) << messages();
  EXPECT_THAT(messages(), HasSubstr("[Resume] 6 steps are done, all of "
                                    "trainer.total_training_steps: 6; --set "
                                    "trainer.total_training_steps=12 trains on"));
  EXPECT_EQ(text_of(folder_ / "bits/metrics.jsonl"), before);
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

/// Half a cosine wave over four steps has ended where one over eight is half done.
TEST_F(Resume, ALearningRateThatJumpsIsTold) {
  const std::string cosine =
      "--set trainer.save_freq=4 --set actor_rollout_ref.actor.optim.lr_scheduler_type=cosine ";
  ASSERT_EQ(train_ppo("wave", 4, cosine), 0) << messages();
  const double last = metrics("wave").back().data.at("actor/lr");
  ASSERT_EQ(train_ppo("wave", 8, cosine + "--resume"), 0) << messages();
  EXPECT_LT(2 * last, metrics("wave").at(4).data.at("actor/lr"));
  EXPECT_THAT(messages(), HasSubstr("[Resume] the actor's learning rate jumps: it was "));
  EXPECT_THAT(messages(),
              HasSubstr(" in step 4, where this run's schedule (cosine, 8 steps) has "));
  EXPECT_THAT(messages(), Not(HasSubstr("the critic's learning rate")));
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

/// What refuses an attempt to go on: the reader of the run file, before a rank starts, and the
/// ranks themselves, which find no critic in the checkpoint.
TEST_F(Resume, AnAttemptThatIsRefusedLeavesTheDocumentsOfTheRun) {
  const std::string saved = "--set trainer.save_freq=1 ";
  ASSERT_EQ(train("unchanged", 2, saved), 0);
  const std::string plan = text_of(folder_ / "unchanged/plan.json");
  const std::string config = text_of(folder_ / "unchanged/run.yaml");
  const auto expect_unchanged = [&](const std::string& what) {
    EXPECT_EQ(text_of(folder_ / "unchanged/plan.json"), plan) << what;
    EXPECT_EQ(text_of(folder_ / "unchanged/run.yaml"), config) << what;
    EXPECT_FALSE(fs::exists(folder_ / "unchanged/plan-1.json")) << what;
    EXPECT_FALSE(fs::exists(folder_ / "unchanged/run-1.yaml")) << what;
  };
  EXPECT_EQ(train("unchanged", 3, "--set trainer.save_frequency=2 --resume"), 65);
  expect_unchanged("a key that is not known");
  EXPECT_EQ(train_ppo("unchanged", 3, "--resume"), 65);
  EXPECT_THAT(messages(), HasSubstr("in phase load"));
  expect_unchanged("a plan with a critic");
  const std::string from = "--set trainer.resume_mode=resume_path --set trainer.resume_from_path=";
  EXPECT_EQ(train_ppo("unmade", 3, from + checkpoint("unchanged", 2).string()), 65);
  EXPECT_FALSE(fs::exists(folder_ / "unmade")) << "the ranks refused, and nothing was trained";
  ASSERT_EQ(run("plan --model " + at("model") +
                " --cluster local-cpu --workload grpo-digits --fix "
                "actor.tp=1 actor.pp=1 rollout.tp=2 -o " +
                at("grpo-dp4.json")),
            0);
  ASSERT_EQ(train("unchanged", 3, saved + "--resume", "grpo-dp4.json"), 0);
  EXPECT_EQ(text_of(folder_ / "unchanged/plan-1.json"), plan) << "of the steps before";
  EXPECT_EQ(text_of(folder_ / "unchanged/run-1.yaml"), config) << "of two steps";
  EXPECT_NE(text_of(folder_ / "unchanged/plan.json"), plan);
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

TEST_F(Resume, WithoutACheckpointARunSaysThatItBeginsAgain) {
  ASSERT_EQ(train_ppo("unsaved", 2), 0) << messages();
  EXPECT_THAT(messages(), Not(HasSubstr("[Resume]")));
  ASSERT_EQ(train_ppo("unsaved", 2, "--resume"), 0) << messages();
  EXPECT_THAT(messages(), HasSubstr("unsaved has no checkpoint (trainer.save_freq writes them): "
                                    "it begins again"));
  EXPECT_EQ(metrics("unsaved").size(), 2U);
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
