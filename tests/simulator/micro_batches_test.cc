#include "simulator/engine/micro_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "cost_models/few_sequences.h"
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

// A brute force: lengths of the standard library's log-normal, dealt and packed.
struct Drawn {
  double micro_batches = 0;            // mean
  double together = 0, by_itself = 0;  // tokens of the slowest replica, by the mean of all
};

Drawn mean_of_draws(const LengthSpec& lengths, std::int64_t prompt, const DealtSequences& dealt,
                    std::int64_t limit) {
  constexpr int kDraws = 4000;
  const double variance = std::log1p(lengths.cv * lengths.cv);
  std::mt19937_64 random(99);
  std::lognormal_distribution<double> length(std::log(lengths.mean) - variance / 2,
                                             std::sqrt(variance));
  Drawn mean;
  double all = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    std::vector<std::int64_t> responses(
        static_cast<std::size_t>(std::llround(dealt.sequences * dealt.replicas)));
    for (std::int64_t& response : responses) {
      response = std::clamp<std::int64_t>(std::llround(length(random)), 1, lengths.max);
    }
    const auto packed = pack_micro_batches(responses, prompt, dealt.replicas, limit);
    double most = 0;
    std::vector<double> slowest(packed.front().size());
    for (const auto& replica : packed) {
      double own = 0;
      for (std::size_t m = 0; m < replica.size(); ++m) {
        own += replica[m].batch.tokens;
        slowest[m] = std::max(slowest[m], replica[m].batch.tokens);
      }
      all += own / dealt.replicas;
      most = std::max(most, own);
    }
    mean.micro_batches += static_cast<double>(slowest.size()) / kDraws;
    mean.by_itself += most;
    for (const double tokens : slowest) mean.together += tokens;
  }
  mean.by_itself /= all;
  mean.together /= all;
  return mean;
}

TEST(MicroBatches, OfFewSequencesAreExpectedAsDrawn) {
  constexpr std::int64_t kPrompt = 256;
  for (const LengthSpec& lengths : {LengthSpec{.mean = 1024, .cv = 0.5, .max = 8192},
                                    LengthSpec{.mean = 1024, .cv = 1.2, .max = 4096},
                                    LengthSpec{.mean = 400, .cv = 2.0, .max = 16384}}) {
    const std::int64_t longest = kPrompt + lengths.max;
    for (const DealtSequences& dealt :
         {DealtSequences{1, 8}, DealtSequences{1, 2}, DealtSequences{2, 4}, DealtSequences{4, 8},
          DealtSequences{3, 16}, DealtSequences{8, 4}, DealtSequences{16, 8},
          DealtSequences{6, 1}}) {
      for (const double part : {1.0, 1.5, 2.5, 6.0}) {
        const auto limit = static_cast<std::int64_t>(part * static_cast<double>(longest));
        const Drawn drawn = mean_of_draws(lengths, kPrompt, dealt, limit);
        FewSequences few(lengths, kPrompt);
        ASSERT_TRUE(few.are(dealt));
        const auto told = [&] {
          return std::to_string(lengths.cv) + ": " + std::to_string(dealt.sequences) + " on " +
                 std::to_string(dealt.replicas) + " under " + std::to_string(part);
        };
        const double count = few.micro_batches(dealt, limit);
        EXPECT_NEAR(count, drawn.micro_batches, std::max(0.35, 0.05 * count)) << told();
        EXPECT_NEAR(few.slowest(dealt, 1, 1).tokens / drawn.by_itself, 1, 0.03) << told();
        const auto at_least = static_cast<int>(count);
        const double below = few.slowest(dealt, dealt.replicas, at_least).tokens;
        const double above = few.slowest(dealt, dealt.replicas, at_least + 1).tokens;
        EXPECT_NEAR((below + (count - at_least) * (above - below)) / drawn.together, 1, 0.05)
            << told();
      }
    }
    FewSequences few(lengths, kPrompt);
    EXPECT_EQ(few.micro_batches({1, 8}, longest), 1);
    EXPECT_EQ(few.slowest({5, 1}, 1, 3), SlowestShare{});
    EXPECT_FALSE(few.are({17, 8}));
  }
  EXPECT_FALSE(FewSequences({.mean = 500, .cv = 0, .max = 500}, kPrompt).are({1, 8}));
}

// Ranks that hold just the mean of a batch would be cut in two in every other step.
TEST(MicroBatches, OfManySequencesAreAsManyAsNearlyEveryDrawNeeds) {
  constexpr int kDraws = 400;
  constexpr std::int64_t kPrompt = 512;
  constexpr LengthSpec kLengths{.mean = 256, .cv = 0.5, .max = 1024};
  const double variance = std::log1p(kLengths.cv * kLengths.cv);
  std::mt19937_64 random(3);
  std::lognormal_distribution<double> length(std::log(kLengths.mean) - variance / 2,
                                             std::sqrt(variance));
  const ExpectedPacking packing(kLengths, kPrompt);
  for (const DealtSequences& dealt : {DealtSequences{20, 64}, DealtSequences{40, 2}}) {
    const double whole = dealt.sequences * static_cast<double>(kPrompt + 256);
    for (const double part : {0.4, 0.5, 0.53, 0.9, 1.0, 1.05}) {
      const auto limit = static_cast<std::int64_t>(part * whole);
      const double counted =
          packing.micro_batches(dealt.sequences, dealt.replicas, packing.sequences(limit));
      int more = 0, far_fewer = 0;
      for (int draw = 0; draw < kDraws; ++draw) {
        std::vector<std::int64_t> responses(
            static_cast<std::size_t>(std::llround(dealt.sequences * dealt.replicas)));
        for (std::int64_t& response : responses) {
          response = std::clamp<std::int64_t>(std::llround(length(random)), 1, kLengths.max);
        }
        const auto needed = static_cast<double>(
            pack_micro_batches(responses, kPrompt, dealt.replicas, limit).front().size());
        more += needed > counted ? 1 : 0;
        far_fewer += needed < counted - 1 ? 1 : 0;
      }
      EXPECT_LE(more, kDraws / 10) << dealt.replicas << " " << part << " " << counted;
      EXPECT_EQ(far_fewer, 0) << dealt.replicas << " " << part << " " << counted;
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
