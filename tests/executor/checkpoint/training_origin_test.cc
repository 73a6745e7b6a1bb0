// What exported weights were trained with, beside them: read back, told where it is spoiled, and
// another seed after every export.
#include "executor/checkpoint/training_origin.h"

#include <gmock/gmock.h>

#include <fstream>
#include <set>

#include "cost_models/documents/problem.h"
#include "tests/executor/temporary_folder.h"

namespace tessera {
namespace {

using testing::HasSubstr;

const TrainingOrigin kTrained{
    .seed = 7,
    .steps = 12,
    .prompts = 400,
    .data = {
        .prompts = 512, .per_step = 32, .seed = 3, .first = 16, .shuffle = false, .digest = "d"}};

void write(const TemporaryFolder& folder, const std::string& text) {
  std::ofstream(folder.path / kTrainingOriginName) << text;
}

TEST(TrainingOrigin, IsReadBackAsItWasWritten) {
  const TemporaryFolder folder;
  Problems problems;
  EXPECT_FALSE(read_training_origin(folder.path, problems)) << "weights that no run has exported";
  EXPECT_TRUE(problems.empty());
  write(folder, to_json(kTrained));
  EXPECT_EQ(read_training_origin(folder.path, problems), kTrained);
  EXPECT_TRUE(problems.empty());
}

TEST(TrainingOrigin, ThatIsSpoiledIsToldWithItsPlace) {
  const std::string good = to_json(kTrained);
  const auto told = [&](const std::string& from, const std::string& to) {
    const TemporaryFolder folder;
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    write(folder, text.replace(at, from.size(), to));
    Problems problems;
    EXPECT_FALSE(read_training_origin(folder.path, problems)) << to;
    return problems.empty() ? std::string() : to_string(problems.front());
  };
  EXPECT_THAT(told("\"steps\": 12", "\"steps\": -1"), HasSubstr("steps"));
  EXPECT_THAT(told("\"seed\": 7", "\"seeds\": 7"), HasSubstr("seed"));
  EXPECT_THAT(told("\"tessera_training\": 1", "\"tessera_training\": 2"), HasSubstr("version 1"));
  EXPECT_THAT(told("}", ""), HasSubstr(kTrainingOriginName));
}

TEST(TrainingOrigin, EveryExportLeadsToAnotherSeed) {
  std::set<std::int64_t> seeds;
  TrainingOrigin origin = kTrained;
  for (origin.seed = 0; origin.seed < 20; ++origin.seed) {
    for (origin.steps = 0; origin.steps < 50; ++origin.steps) {
      const std::int64_t next = next_seed(origin);
      EXPECT_GE(next, 0);
      EXPECT_LT(next, std::int64_t{1} << 32);
      EXPECT_NE(next, origin.seed);
      seeds.insert(next);
    }
  }
  EXPECT_EQ(seeds.size(), 1000U);
}

/// Runs may take other numbers of prompts a step; the position counts prompts.
TEST(TrainingOrigin, GoesOnInTheSameOrderOfTheSamePromptsAlone) {
  CheckpointData data = kTrained.data;
  data.per_step = 8;
  data.first = 400;
  EXPECT_TRUE(continues(kTrained, data));
  for (const auto change :
       {+[](CheckpointData& d) { d.digest = "e"; }, +[](CheckpointData& d) { d.seed = 4; },
        +[](CheckpointData& d) { d.shuffle = true; },
        +[](CheckpointData& d) { d.prompts = 511; }}) {
    CheckpointData other = data;
    change(other);
    EXPECT_FALSE(continues(kTrained, other));
  }
}

}  // namespace
}  // namespace tessera
