// Responses that were recorded, generated again.
#include "executor/rollout/replay.h"

#include <gtest/gtest.h>

#include "cost_models/documents/problem.h"
#include "tests/executor/rollout/hash_model.h"

namespace tessera {
namespace {

TEST(Replay, RecordedResponsesComeBack) {
  const auto all = prompts(4, 2);
  HashModel model(8, kManyPages);
  Experience recorded{.step = 3, .sequences = generate(model, 3, all, options(8))};
  Problems problems;
  EXPECT_EQ(replay(recorded, all, "samples.jsonl", problems), recorded.sequences);
  EXPECT_TRUE(problems.empty());
}

TEST(Replay, MissingSamplesAndOtherPromptsAreNamed) {
  auto all = prompts(3, 2);
  HashModel model(8, kManyPages);
  Experience recorded{.step = 3, .sequences = generate(model, 3, all, options(8))};
  recorded.sequences.pop_back();
  all[0].tokens = {9, 9};
  Problems problems;
  EXPECT_EQ(replay(recorded, all, "samples.jsonl", problems).size(), 3u);
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_EQ(problems[0].place, "step 3, prompt_index 0, sample_index 0");
  EXPECT_EQ(problems[2].place, "step 3, prompt_index 2, sample_index 1");
}

TEST(Replay, ExpertsOfAnotherModelAreNamed) {
  ModelSpec model{.layers = 3};
  model.moe = MoeSpec{.experts = 4, .experts_per_token = 2, .expert_ffn = 8};
  const auto problems_of = [&](std::vector<std::int16_t> experts) {
    const Sequence sequence{.prompt_index = 1,
                            .sample_index = 2,
                            .prompt = {7},
                            .response = {8, 9},
                            .routed_experts = std::move(experts)};
    Problems problems;
    check_experts({&sequence, 1}, 5, model, "samples.jsonl", problems);
    return problems;
  };
  EXPECT_TRUE(problems_of(std::vector<std::int16_t>(12, 3)).empty()) << "of all but the last token";
  EXPECT_TRUE(problems_of(std::vector<std::int16_t>(18, 0)).empty());
  for (const auto& experts : {std::vector<std::int16_t>{}, std::vector<std::int16_t>(11, 0),
                              std::vector<std::int16_t>(24, 0), std::vector<std::int16_t>(12, 4)}) {
    const Problems problems = problems_of(experts);
    ASSERT_EQ(problems.size(), 1u) << experts.size();
    EXPECT_EQ(problems[0].place, "step 5, prompt_index 1, sample_index 2, routed_experts");
  }
}

}  // namespace
}  // namespace tessera
