// Checkpoints that the step after them shows to be ruined: a run goes on from an older one, unless
// it is told otherwise. On four CPU ranks.
#include <gmock/gmock.h>

#include <fstream>
#include <string>

#include "cost_models/documents/problem.h"
#include "tests/cli/programs.h"

namespace tessera {
namespace {

using testing::HasSubstr;

class RuinedRun : public ProgramTest {
 protected:
  static fs::path checkpoint(const std::string& name, int step) {
    return folder_ / name / "checkpoints" / ("global_step_" + std::to_string(step));
  }
  static std::string log(const std::string& name) { return text_of(folder_ / name / "log.txt"); }

  /// Eight steps with checkpoints after every second; made once.
  static const std::string& plain() {
    static const std::string name = [] {
      EXPECT_EQ(train("plain", 8, "--set trainer.save_freq=2"), 0);
      return std::string("plain");
    }();
    return name;
  }

  /// Weights that are numbers, and too large to compute with: only step 3 shows that those of step
  /// 2's checkpoint are. Made once; runs go on in copies of it.
  static const std::string& ruined() {
    static const std::string name = [] {
      std::ofstream(at("one.yaml")) << "version: 1\nalgorithm: grpo\nprompts_per_step: 32\n"
                                       "samples_per_prompt: 4\nprompt_tokens: 8\n"
                                       "response_tokens: {mean: 4, cv: 0, max: 4}\n"
                                       "mini_batches: 1\nepochs: 1\nkl: none\n";
      EXPECT_EQ(
          run("plan --model " + at("model") + " --cluster local-cpu --workload " + at("one.yaml") +
              " --fix actor.tp=2 actor.pp=2 rollout.tp=2 rollout.dp=2 -o " + at("one.json")),
          0);
      EXPECT_EQ(train("ruined", 4,
                      kSaving + "actor_rollout_ref.actor.optim.lr=1e18 "
                                "actor_rollout_ref.actor.optim.lr_warmup_steps=2",
                      "one.json"),
                static_cast<int>(ExitCode::check_failed));
      return std::string("ruined");
    }();
    return name;
  }
  static inline const std::string kSaving =
      "--set trainer.save_freq=1 trainer.max_actor_ckpt_to_keep=1 ";
};

/// The checkpoint before the ruined one is still there to go on from.
TEST_F(RuinedRun, AStateThatTheNextStepShowsToBeRuinedCostsNoOlderCheckpoint) {
  EXPECT_THAT(log(ruined()), HasSubstr(" of step 3: no token can be drawn: "));
  EXPECT_TRUE(fs::exists(checkpoint(ruined(), 2))) << log(ruined());
  ASSERT_TRUE(fs::exists(checkpoint(ruined(), 1))) << log(ruined());
  EXPECT_EQ(train("mended", 3,
                  kSaving + "trainer.resume_mode=resume_path trainer.resume_from_path=" +
                      checkpoint(ruined(), 1).string(),
                  "one.json"),
            0);
  EXPECT_THAT(log("mended"), HasSubstr("[Resume] from step 1"));
  EXPECT_FALSE(fs::exists(checkpoint("mended", 1)));
}

TEST_F(RuinedRun, ACheckpointWithWhichNoTokenCanBeDrawnIsPassedOver) {
  EXPECT_THAT(log(ruined()),
              HasSubstr("[Checkpoint] that of step 2 is ruined: no token can be drawn"));
  for (const char* name : {"passed", "meant", "without"}) {
    fs::copy(folder_ / ruined(), folder_ / name, fs::copy_options::recursive);
  }
  ASSERT_EQ(train("passed", 3, kSaving + "--resume", "one.json"), 0) << log("passed");
  EXPECT_THAT(log("passed"),
              HasSubstr("global_step_2: found a state that is ruined: no token can be drawn with "
                        "its weights, expected a checkpoint that the step after it has not shown "
                        "to be so (trainer.resume_ruined: true takes it all the same)\n"));
  EXPECT_THAT(log("passed"), HasSubstr("[Resume] from step 1, "));
  EXPECT_EQ(train("meant", 3, kSaving + "trainer.resume_ruined=true --resume", "one.json"),
            static_cast<int>(ExitCode::check_failed));
  EXPECT_THAT(log("meant"), HasSubstr("[Resume] from step 2, "));
  fs::remove_all(checkpoint("without", 1));
  const std::string before = text_of(folder_ / "without/metrics.jsonl");
  EXPECT_EQ(train("without", 3, kSaving + "--resume", "one.json"),
            static_cast<int>(ExitCode::bad_input));
  EXPECT_EQ(text_of(folder_ / "without/metrics.jsonl"), before) << "nothing begins anew";
}

/// A step whose first update has numbers that are none says so of the state before it, until one
/// goes well from there.
TEST_F(RuinedRun, AStateWhoseFirstUpdateIsNoNumberIsPassedOver) {
  fs::copy(folder_ / plain(), folder_ / "first-update", fs::copy_options::recursive);
  fs::remove_all(checkpoint("first-update", 8));
  const fs::path note = checkpoint("first-update", 6) / "ruined.txt";
  const std::string more = "--resume --set trainer.save_freq=2 ";
  EXPECT_EQ(train("first-update", 7, more + "actor_rollout_ref.actor.entropy_coeff=1e300"),
            static_cast<int>(ExitCode::check_failed));
  EXPECT_EQ(text_of(note), "numbers of the first update of step 7 are NaN or infinite\n");
  fs::copy(folder_ / "first-update", folder_ / "taken-anyway", fs::copy_options::recursive);
  ASSERT_EQ(train("first-update", 8, more), 0) << log("first-update");
  EXPECT_THAT(log("first-update"), HasSubstr("[Resume] from step 4, "));
  EXPECT_FALSE(fs::exists(note));
  EXPECT_TRUE(text_of(folder_ / "first-update/hf/model.safetensors") ==
              text_of(folder_ / plain() / "hf/model.safetensors"));
  ASSERT_EQ(train("taken-anyway", 7, more + "trainer.resume_ruined=true"), 0);
  EXPECT_THAT(log("taken-anyway"), HasSubstr("[Resume] from step 6, "));
  EXPECT_FALSE(fs::exists(checkpoint("taken-anyway", 6) / "ruined.txt"));
}

}  // namespace
}  // namespace tessera
