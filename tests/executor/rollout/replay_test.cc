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

}  // namespace
}  // namespace tessera
