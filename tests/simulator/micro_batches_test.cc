#include "simulator/engine/micro_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "cost_models/packing.h"
#include "simulator/rollout/draw_lengths.h"

namespace tessera {
namespace {

/// What the planner expects of lengths, against packings of drawn ones.
TEST(MicroBatches, HoldAsManySequencesAsThePlannerExpects) {
  for (const LengthSpec& lengths : {LengthSpec{.mean = 600, .cv = 0.6, .max = 2048},
                                    LengthSpec{.mean = 300, .cv = 1, .max = 1024},
                                    LengthSpec{.mean = 500, .cv = 0, .max = 500}}) {
    Workload workload;
    workload.prompts_per_step = 1024;
    workload.samples_per_prompt = 4;
    workload.prompt_tokens = 100;
    workload.response_tokens = lengths;
    const std::vector<std::int64_t> drawn = draw_lengths(workload, 7, 0);
    const ExpectedPacking packing(lengths, workload.prompt_tokens);
    for (const std::int64_t limit : {2148, 3000, 4296, 8592, 17184, 34368}) {
      const auto packed = pack_micro_batches(drawn, workload.prompt_tokens, 1, limit);
      const double each = static_cast<double>(drawn.size()) / static_cast<double>(packed[0].size());
      EXPECT_NEAR(packing.sequences(limit) / each, 1, 0.05) << lengths.cv << " " << limit;
    }
  }
}

TEST(MicroBatches, HoldEverySequenceOnceWithinTheLimit) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    const auto any = [&](int low, int high) {
      return std::uniform_int_distribution<int>(low, high)(random);
    };
    const int replicas = any(1, 6), prompt = any(1, 50), limit = any(20, 400);
    std::vector<std::int64_t> responses(static_cast<std::size_t>(any(replicas, 60)));
    double tokens = 0, squared = 0;
    for (std::int64_t& response : responses) {
      response = any(1, 100);
      const auto length = static_cast<double>(prompt + response);
      tokens += length;
      squared += length * length;
    }
    const auto packed = pack_micro_batches(responses, prompt, replicas, limit);
    ASSERT_EQ(std::ssize(packed), replicas);
    double sequences = 0;
    std::size_t most = 0;
    for (const auto& replica : packed) most = std::max(most, replica.size());
    for (const auto& replica : packed) {
      double here = 0;
      for (const MicroBatch& one : replica) {
        here += one.batch.sequences;
        tokens -= one.batch.tokens;
        squared -= one.batch.squared;
        EXPECT_GT(one.batch.sequences, 0);
        EXPECT_TRUE(one.batch.sequences == 1 || one.batch.tokens <= limit);
        EXPECT_EQ(one.batch.tokens, one.responses + prompt * one.batch.sequences);
      }
      EXPECT_TRUE(replica.size() == most || static_cast<double>(replica.size()) == here);
      EXPECT_LE(std::abs(here - static_cast<double>(responses.size()) / replicas), 1);
      sequences += here;
    }
    EXPECT_EQ(sequences, static_cast<double>(responses.size()));
    EXPECT_EQ(tokens, 0);
    EXPECT_EQ(squared, 0);
  }
}

// Counts of verl 0.9.1's rearrange_micro_batches with num_batches_divided_by = `round`, of
// sequences of 8 tokens.
TEST(MicroBatches, OfInterleavedStagesFillWholeRounds) {
  struct Case {
    int sequences, limit, round, count;
  };
  for (const Case& c : {Case{24, 32, 1, 6},
                        {24, 40, 4, 8},
                        {24, 32, 4, 8},
                        {18, 32, 4, 8},
                        {17, 16, 4, 12},
                        {24, 16, 8, 16},
                        {8, 64, 4, 4},
                        {4, 64, 4, 4},
                        {30, 56, 2, 6}}) {
    const std::vector<std::int64_t> lengths(static_cast<std::size_t>(3 * c.sequences), 6);
    for (const auto& replica : pack_micro_batches(lengths, 2, 3, c.limit, c.round)) {
      EXPECT_EQ(std::ssize(replica), c.count)
          << c.sequences << " of 8 in " << c.limit << " by " << c.round;
    }
  }
}

TEST(MicroBatches, OfEqualSequencesAreTheFewestThatTheLimitAllows) {
  const auto packed = pack_micro_batches(std::vector<std::int64_t>(24, 6), 2, 2, 32);
  ASSERT_EQ(packed.size(), 2u);
  for (const auto& replica : packed) {
    ASSERT_EQ(replica.size(), 3u);  // 12 sequences, 4 fit
    for (const MicroBatch& one : replica) EXPECT_EQ(one.batch.sequences, 4);
  }
}

}  // namespace
}  // namespace tessera
