#include "executor/records/step_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::Not;

namespace fs = std::filesystem;

class Progress : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("tessera-progress-" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// What is printed by a run of 45 steps with a note after the fourth.
  std::string printed(bool terminal) const {
    testing::internal::CaptureStderr();
    {
      StepProgress progress(folder_, 45, terminal);
      for (int step = 1; step <= 45; ++step) {
        progress.detail("[Reshard] of step " + std::to_string(step));
        progress.step(step, {{"critic/score/mean", step / 100.0},
                             {"actor/ppo_kl", 0.25},
                             {"timing_s/step", 0.5},
                             {"timing_s/gen", 0.125}});
        if (step == 4) progress.note("a note");
      }
    }
    return testing::internal::GetCapturedStderr();
  }
  std::string log() const {
    std::ifstream in(folder_ / "log.txt");
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path folder_;
};

TEST_F(Progress, RewritesOneLineOnATerminal) {
  const std::string text = printed(true);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);  // the note's and the last
  EXPECT_THAT(text, HasSubstr("\r\033[Kstep 20 of 45: reward 0.200, KL 0.2500, 500 ms a step"));
  EXPECT_THAT(text, HasSubstr("\r\033[Ka note\n"));
  EXPECT_TRUE(text.ends_with("0 s left\n"));
}

TEST_F(Progress, PrintsAFewLinesElsewhere) {
  const std::string text = printed(false);
  EXPECT_THAT(text, Not(HasSubstr("\r")));
  for (const char* line : {"step 1: ", "step 3: ", "step 20: ", "step 40: ", "step 45: "}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 7);  // with the note
  EXPECT_THAT(text, HasSubstr("step 20: reward 0.200, KL 0.2500, loss 0.0000, grad norm 0.000, "
                              "500 ms (gen 125, update 0, reshard 0.00)\n"));
}

TEST_F(Progress, WritesEveryLine) {
  printed(true);
  const std::string text = log();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 91);
  EXPECT_THAT(text, HasSubstr("[Reshard] of step 7\nstep 7: reward 0.070"));
  EXPECT_THAT(text, HasSubstr("\na note\n"));
}

TEST_F(Progress, SumsTheUpdatesOfAllModels) {
  EXPECT_THAT(step_line(1, {{"timing_s/update_actor", 1},
                            {"timing_s/update_critic", 0.5},
                            {"timing_s/old_log_prob", 4}}),
              HasSubstr("update 1500,"));
}

TEST_F(Progress, NamesTheDivergenceFromTheReferenceWhereThereIsOne) {
  EXPECT_THAT(step_line(1, {{"actor/ppo_kl", 0.25}, {"actor/kl_loss", 0.5}}),
              HasSubstr("KL 0.5000"));
  EXPECT_THAT(step_line(1, {{"actor/reward_kl_penalty", 0.125}}), HasSubstr("KL 0.1250"));
}

}  // namespace
}  // namespace tessera
