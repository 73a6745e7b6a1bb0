// rollout.batch_invariant as a user runs it on CPU ranks: the trainer's log-probs are the
// rollout's, bit for bit, whatever the layouts and however crowded the cache; what it cannot keep
// it refuses.
#include <gmock/gmock.h>

#include <regex>

#include "tests/cli/programs.h"

namespace tessera {
namespace {

class InvariantRun : public ProgramTest {
 protected:
  static int plan(const std::string& name, const std::string& fixed,
                  const std::string& workload = "grpo-digits") {
    return run("plan --model " + at("model") + " --cluster local-cpu --workload " + workload +
               " --fix " + fixed + " -o " + at(name + ".json"));
  }

  /// A metric of every step.
  static std::vector<double> of_steps(const std::string& name, const std::string& metric) {
    Problems problems;
    std::vector<double> values;
    const auto steps = read_metrics(folder_ / name / "metrics.jsonl", problems);
    for (const StepNumbers& step : steps.value()) values.push_back(step.data.at(metric));
    return values;
  }

  static constexpr const char* kMode = "--set actor_rollout_ref.rollout.batch_invariant=true ";
  static constexpr const char* kGap = "training/rollout_probs_diff_max";
};

TEST_F(InvariantRun, TheTrainersLogProbsAreTheRolloutsBitForBit) {
  for (const auto& [name, fixed] : std::vector<std::pair<std::string, std::string>>{
           {"tp1", "actor.tp=1 actor.pp=1 actor.zero=0 rollout.tp=1 rollout.dp=4"},
           {"fsdp", "actor.tp=1 actor.pp=1 actor.zero=3 rollout.tp=1 rollout.dp=4"},
           {"tp2", "actor.tp=2 actor.pp=1 actor.zero=1 rollout.tp=2 rollout.dp=2"},
           {"tp2-pp2", "actor.tp=2 actor.pp=2 rollout.tp=2 rollout.dp=2"},
           {"tp4", "actor.tp=4 actor.pp=1 rollout.tp=4 rollout.dp=1"}}) {
    SCOPED_TRACE(name);
    ASSERT_EQ(plan(name, fixed), 0);
    ASSERT_EQ(train(name, 2, kMode, name + ".json"), 0);
    EXPECT_THAT(of_steps(name, kGap), testing::ElementsAre(0, 0));
    EXPECT_THAT(of_steps(name, "training/rollout_probs_diff_mean"), testing::ElementsAre(0, 0));
  }
  ASSERT_EQ(train("fastest", 2, "", "tp2-pp2.json"), 0);
  EXPECT_GT(of_steps("fastest", kGap)[0], 0) << "so small a model has equal bits by itself";
}

/// A cache for a few texts: samples leave and come back, and say what they said with room for all.
TEST_F(InvariantRun, ACrowdedCacheChangesNoBit) {
  std::ofstream(at("long.yaml")) << "version: 1\nalgorithm: grpo\nprompts_per_step: 8\n"
                                 << "samples_per_prompt: 8\nprompt_tokens: 8\n"
                                 << "response_tokens: {mean: 30, cv: 0, max: 60}\n"
                                 << "mini_batches: 1\nepochs: 1\nkl: none\n";
  ASSERT_EQ(plan("roomy", "actor.tp=2 actor.pp=1 rollout.tp=2 rollout.dp=2", at("long.yaml")), 0);
  std::string crowded = text_of(at("roomy.json"));
  const std::regex tokens(R"re("kv_cache_tokens": \d+)re");
  ASSERT_TRUE(std::regex_search(crowded, tokens));
  crowded = std::regex_replace(crowded, tokens, "\"kv_cache_tokens\": 96");
  std::ofstream(at("crowded.json")) << crowded;
  for (const std::string name : {"roomy", "crowded"}) {
    ASSERT_EQ(train(name, 2, kMode, name + ".json"), 0) << name;
    EXPECT_THAT(of_steps(name, kGap), testing::ElementsAre(0, 0)) << name;
  }
  EXPECT_EQ(of_steps("roomy", "rollout/preemptions")[0], 0);
  EXPECT_GT(of_steps("crowded", "rollout/preemptions")[0], 0);
  const std::string samples = text_of(folder_ / "roomy/samples.jsonl");
  EXPECT_FALSE(samples.empty());
  EXPECT_EQ(samples, text_of(folder_ / "crowded/samples.jsonl"));
}

TEST_F(InvariantRun, ItsCostIsMeasured) {
  ASSERT_EQ(train("cost", 2, kMode), 0);
  Problems problems;
  const auto steps = read_metrics(folder_ / "cost/metrics.jsonl", problems);
  ASSERT_EQ(steps->size(), 2U);
  for (const char* metric : {"rollout/batch_invariant_pass_s", "rollout/fastest_pass_s"}) {
    ASSERT_TRUE(steps->front().data.contains(metric));
    EXPECT_GT(steps->front().data.at(metric), 0);
    EXPECT_FALSE(steps->back().data.contains(metric)) << "the first generation is measured";
  }
}

TEST_F(InvariantRun, OtherLayoutsAreRefused) {
  ASSERT_EQ(plan("other", "actor.tp=1 actor.pp=1 rollout.tp=2 rollout.dp=2"), 0);
  EXPECT_EQ(train("other", 1, kMode, "other.json"), 65);
  EXPECT_EQ(train("without", 1, "", "other.json"), 0);
}

}  // namespace
}  // namespace tessera
