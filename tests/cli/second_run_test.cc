// A run that begins with the weights that another one has exported: it repeats neither its prompts
// nor its random numbers, unless its file states a seed.
#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/cli/programs.h"

namespace tessera {
namespace {

using testing::HasSubstr;

class SecondRun : public ProgramTest {
 protected:
  static void SetUpTestSuite() {
    ProgramTest::SetUpTestSuite();
    std::string config = text_of(TESSERA_SOURCE_DIR "/configs/runs/grpo-digits.yaml");
    const std::string seed = "  seed: 1\n";
    ASSERT_NE(config.find(seed), std::string::npos);
    std::ofstream(at("run.yaml")) << config.erase(config.find(seed), seed.size());
    ASSERT_EQ(train("first", 2), 0) << messages();
    ASSERT_EQ(plan_of("first/hf", "second.json"), 0);
  }
  static int plan_of(const std::string& model, const std::string& name) {
    return run("plan --model " + at(model) +
               " --cluster local-cpu --workload grpo-digits --fix actor.tp=1 actor.zero=1 "
               "rollout.tp=2 rollout.dp=2 -o " +
               at(name));
  }
  static int train(const std::string& name, int steps, const std::string& more = "",
                   const std::string& plan = "plan.json") {
    const std::string line = kTessera + " run " + at(plan) + " --config " + at("run.yaml") +
                             " --set 'data.train_files=[" + at("prompts.jsonl") +
                             "]' --set trainer.total_training_steps=" + std::to_string(steps) +
                             " " + more + " -o " + at(name) + " >" + at("messages") + " 2>&1";
    const int status = std::system(line.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  static std::string messages() { return text_of(at("messages")); }
  static nlohmann::json origin(const std::string& name) {
    return nlohmann::json::parse(text_of(folder_ / name / "hf/tessera_training.json"));
  }

  /// Of one step, in order: what was asked, and what was answered.
  struct Said {
    std::vector<std::string> prompts, responses;
  };
  static Said said(const std::string& name, int step) {
    std::istringstream in(text_of(folder_ / name / "samples.jsonl"));
    Said all;
    for (std::string line; std::getline(in, line);) {
      const auto sample = nlohmann::json::parse(line);
      if (sample.at("step") != step) continue;
      all.prompts.push_back(sample.at("uid"));
      all.responses.push_back(sample.at("response_ids").dump());
    }
    EXPECT_EQ(all.prompts.size(), 32U * 16U) << name << " " << step;
    return all;
  }
};

/// The oracle is one run of four steps: its steps 3 and 4 take the prompts that come next.
TEST_F(SecondRun, GoesOnWithOtherPromptsAndOtherNumbers) {
  ASSERT_EQ(train("whole", 4), 0) << messages();
  ASSERT_EQ(train("second", 2, "", "second.json"), 0) << messages();
  const auto begun = origin("first"), went_on = origin("second");
  EXPECT_EQ(begun.at("seed"), 0);
  EXPECT_EQ(begun.at("steps"), 2);
  EXPECT_EQ(begun.at("prompts_taken"), 64);
  EXPECT_EQ(went_on.at("prompts_taken"), 128);
  const std::string seed = went_on.at("seed").dump();
  EXPECT_NE(seed, "0");
  EXPECT_THAT(messages(), HasSubstr("[Start] the weights were trained for 2 steps by a run with "
                                    "seed 0; this one has seed " +
                                    seed + " and begins after the 64 prompts of that one"));
  const Said second = said("second", 1);
  EXPECT_EQ(second.prompts, said("whole", 3).prompts);
  EXPECT_EQ(said("second", 2).prompts, said("whole", 4).prompts);
  const Said first = said("first", 1), after = said("first", 2);
  for (const std::string& prompt : std::set(second.prompts.begin(), second.prompts.end())) {
    EXPECT_THAT(first.prompts, testing::Not(testing::Contains(prompt)));
    EXPECT_THAT(after.prompts, testing::Not(testing::Contains(prompt)));
  }
  // Equal weights and prompts: the answers differ by the numbers alone.
  ASSERT_EQ(train("old-numbers", 1, "--set actor_rollout_ref.rollout.seed=0", "second.json"), 0)
      << messages();
  EXPECT_EQ(said("old-numbers", 1).prompts, second.prompts);
  EXPECT_NE(said("old-numbers", 1).responses, second.responses);
  ASSERT_EQ(train("again", 1, "", "second.json"), 0) << messages();
  EXPECT_EQ(said("again", 1).responses, second.responses) << "the seed is derived";
}

TEST_F(SecondRun, WithAStatedSeedDoesAsItSays) {
  ASSERT_EQ(train("replay", 1, "--set trainer.seed=0", "second.json"), 0) << messages();
  EXPECT_THAT(messages(), HasSubstr("this one has seed 0, as its file states, and draws the same"));
  EXPECT_EQ(said("replay", 1).prompts, said("first", 1).prompts);
  EXPECT_EQ(origin("replay").at("prompts_taken"), 32);
}

TEST_F(SecondRun, OverOtherPromptsBeginsWithTheirFirst) {
  ASSERT_EQ(run("make-data --task copy --digits 3 --count 64 -o " + at("other.jsonl")), 0);
  ASSERT_EQ(
      train("other", 1, "--set 'data.train_files=[" + at("other.jsonl") + "]'", "second.json"), 0)
      << messages();
  EXPECT_THAT(messages(), HasSubstr("begins with the first of other prompts"));
  EXPECT_EQ(origin("other").at("prompts_taken"), 32);
  EXPECT_NE(origin("other").at("seed"), 0);
}

/// What goes on from a checkpoint of such a run is what the run would have done.
TEST_F(SecondRun, IsResumedAsItWas) {
  const std::string save = "--set trainer.save_freq=1";
  ASSERT_EQ(train("unbroken", 2, save, "second.json"), 0) << messages();
  ASSERT_EQ(train("broken", 1, save, "second.json"), 0) << messages();
  ASSERT_EQ(train("broken", 2, save + " --resume", "second.json"), 0) << messages();
  EXPECT_EQ(text_of(folder_ / "broken/samples.jsonl"), text_of(folder_ / "unbroken/samples.jsonl"));
  EXPECT_EQ(text_of(folder_ / "broken/hf/model.safetensors"),
            text_of(folder_ / "unbroken/hf/model.safetensors"));
  EXPECT_EQ(origin("broken"), origin("unbroken"));
}

TEST_F(SecondRun, WhoseOriginCannotBeReadIsRefused) {
  fs::copy(folder_ / "first/hf", folder_ / "spoiled", fs::copy_options::recursive);
  std::ofstream(at("spoiled/tessera_training.json")) << R"({"tessera_training": 1, "seed": -3})";
  ASSERT_EQ(plan_of("spoiled", "spoiled.json"), 0);
  EXPECT_EQ(train("refused", 1, "", "spoiled.json"), 65);
  EXPECT_THAT(messages(), HasSubstr("spoiled/tessera_training.json"));
  EXPECT_THAT(messages(), HasSubstr("-3"));
}

}  // namespace
}  // namespace tessera
