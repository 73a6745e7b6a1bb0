#include "cost_models/pipeline/uneven_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "cost_models/few_sequences.h"
#include "cost_models/lengths.h"
#include "tests/cost_models/pipeline/schedule_oracle.h"

namespace tessera {
namespace {

std::string told(const StagedPass& pass, std::size_t count) {
  return std::to_string(pass.stages) + " stages of " + std::to_string(pass.chunks) + ", " +
         std::to_string(count) + (pass.training ? " micro-batches" : " forwards");
}

TEST(UnevenBatches, TakeAsLongAsAScheduleOfEvents) {
  std::mt19937_64 random(3);
  for (const double cv : {0.0, 0.3, 1.0, 2.0}) {
    const double variance = std::log1p(cv * cv);
    std::lognormal_distribution<double> load(-variance / 2, std::sqrt(variance) + 1e-12);
    for (const int stages : {1, 2, 3, 4, 8, 16}) {
      for (const int chunks : {1, 2, 3, 5}) {
        for (const int count : {stages, 2 * stages, 3, 7}) {
          if (chunks > 1 && count % stages != 0) continue;  // not Megatron-LM's
          std::vector<double> loads(static_cast<std::size_t>(count));
          for (double& each : loads) each = load(random);
          if (count % 2 == 0) std::sort(loads.begin(), loads.end(), std::greater<>());
          for (const bool training : {false, true}) {
            const StagedPass pass{stages, chunks, training};
            ScheduleOracle oracle(stages, chunks, training, loads);
            const double expected = oracle.length();
            ASSERT_TRUE(oracle.complete()) << told(pass, loads.size());
            ASSERT_NEAR(schedule_length(pass, loads) / expected, 1, 1e-12)
                << told(pass, loads.size()) << ", cv " << cv;
            const std::vector<double> equal(loads.size(), 1.0);
            ASSERT_NEAR(schedule_length(pass, count) /
                            ScheduleOracle(stages, chunks, training, equal).length(),
                        1, 1e-12)
                << told(pass, loads.size());
          }
        }
      }
    }
  }
}

// Stages that differ, and micro-batches too.
TEST(UnevenStages, TakeAsLongAsAScheduleOfEvents) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> share(0.1, 1.9), load(0.5, 1.5);
  for (const int stages : {2, 3, 4, 8}) {
    for (const int chunks : {1, 2, 3}) {
      for (const bool training : {false, true}) {
        std::vector<double> shares(static_cast<std::size_t>(stages * chunks));
        for (double& each : shares) each = share(random);
        std::vector<double> loads(2 * static_cast<std::size_t>(stages));
        for (double& each : loads) each = load(random);
        const StagedPass pass{stages, chunks, training, shares};
        ScheduleOracle oracle(stages, chunks, training, loads, shares);
        ASSERT_NEAR(schedule_length(pass, loads) / oracle.length(), 1, 1e-12)
            << told(pass, loads.size());
        ASSERT_TRUE(oracle.complete());
        const std::vector<double> equal(loads.size(), 1.0);
        const double length = ScheduleOracle(stages, chunks, training, equal, shares).length();
        const auto count = static_cast<int>(loads.size());
        ASSERT_NEAR(schedule_length(pass, count) / length, 1, 1e-12) << told(pass, loads.size());
        PassSeconds each;
        for (const double one : shares) {
          each.forward.emplace_back(one / chunks);
          each.backward.emplace_back(2 * one / chunks);
        }
        ASSERT_NEAR(schedule_seconds(pass, each, count).value / length, 1, 1e-12);
      }
    }
  }
}

// One micro-batch: all that it passes, and a message between neighbours.
TEST(UnevenStages, OfOneMicroBatchFollowOneAnother) {
  const PassSeconds each{.forward = {Seconds{1}, Seconds{5}, Seconds{2}},
                         .backward = {Seconds{3}, Seconds{7}, Seconds{4}},
                         .hop = Seconds{0.5}};
  EXPECT_DOUBLE_EQ(schedule_seconds({3, 1, true}, each, 1).value, 22 + 4 * 0.5);
  EXPECT_DOUBLE_EQ(schedule_seconds({3, 1, false}, each, 1).value, 8 + 2 * 0.5);
}

TEST(UnevenBatches, TakeTheirSumAndTheLargestForEveryFurtherStageForward) {
  const std::vector<double> loads{1, 0.5, 3, 0.25, 2};
  EXPECT_DOUBLE_EQ(schedule_length({4, 1, false}, loads), 6.75 + 3 * 3);
  EXPECT_DOUBLE_EQ(schedule_length({4, 1, true}, 8), (8 + 4 - 1) * 3);
  EXPECT_DOUBLE_EQ(schedule_length({4, 2, true}, 8), (8 + 3.0 / 2) * 3);
}

// A last round that is not full waits for no micro-batch for ever.
TEST(UnevenBatches, OfAnyNumberComeToAnEnd) {
  for (const int count : {1, 2, 3, 5, 6, 7, 9}) {
    EXPECT_GE(schedule_length({4, 3, true}, count), 3 * count);
  }
}

// Lengths that are drawn, dealt to replicas and packed with what stands in cost_models/packing.h,
// through the schedule of events: the mean of what the slowest replica takes.
struct Drawn {
  LengthSpec lengths;
  DealtSequences dealt;
  int micro_batches = 0;
  StagedPass pass;
  int together = 1;
  BatchOrder order = BatchOrder::fullest_first;
};

constexpr std::int64_t kPrompt = 512;
constexpr double kProducts = 24576;  // of a 7B: a token's products as squared tokens of attention

std::vector<std::vector<double>> loads_of(const std::vector<PackedPart>& replicas, int count) {
  std::vector<std::vector<double>> loads;
  for (const PackedPart& replica : replicas) {
    auto& own = loads.emplace_back();
    for (const PackedPart& part : in_micro_batches(replica, kPrompt, count)) {
      double load = kProducts * static_cast<double>(part.tokens);
      for (const std::int64_t response : part.responses) {
        load += static_cast<double>((kPrompt + response) * (kPrompt + response));
      }
      own.push_back(load);
    }
  }
  return loads;
}

// verl 0.9.1's utils/seqlen_balancing.py, rearrange_micro_batches: [::2][::-1] + [1::2] of what is
// sorted in descending order.
std::vector<double> smallest_at_both_ends(std::vector<double> loads) {
  std::sort(loads.begin(), loads.end(), std::greater<>());
  std::vector<double> even, odd;
  for (std::size_t i = 0; i < loads.size(); ++i) (i % 2 == 0 ? even : odd).push_back(loads[i]);
  std::reverse(even.begin(), even.end());
  even.insert(even.end(), odd.begin(), odd.end());
  return even;
}

double mean_of_draws(const Drawn& asked, int draws) {
  const double variance = std::log1p(asked.lengths.cv * asked.lengths.cv);
  std::mt19937_64 random(11);
  std::lognormal_distribution<double> length(std::log(asked.lengths.mean) - variance / 2,
                                             std::sqrt(variance));
  const auto each = static_cast<std::size_t>(asked.dealt.sequences);
  double sum = 0;
  for (int draw = 0; draw < draws; ++draw) {
    std::vector<std::int64_t> responses(each * static_cast<std::size_t>(asked.dealt.replicas));
    for (std::int64_t& response : responses) {
      response = std::clamp<std::int64_t>(std::llround(length(random)), 1, asked.lengths.max);
    }
    std::sort(responses.begin(), responses.end(), std::greater<>());
    auto loads = loads_of(longest_first(responses, kPrompt, asked.dealt.replicas, each),
                          asked.micro_batches);
    if (asked.together > 1) {  // of all replicas
      for (const auto& replica : loads) {
        for (std::size_t m = 0; m < replica.size(); ++m) {
          loads[0][m] = std::max(loads[0][m], replica[m]);
        }
      }
      loads.resize(1);
    }
    double longest = 0;
    for (auto& replica : loads) {
      if (asked.order == BatchOrder::fullest_within) replica = smallest_at_both_ends(replica);
      ScheduleOracle oracle(asked.pass.stages, asked.pass.chunks, asked.pass.training, replica);
      longest = std::max(longest, oracle.length());
    }
    sum += longest / draws;
  }
  return sum;
}

double planned(const Drawn& asked, double spread) {
  FewSequences few(asked.lengths, kPrompt);
  SlowestShare share;
  if (few.are(asked.dealt)) share = few.slowest(asked.dealt, asked.together, asked.micro_batches);
  const double response = mean_length(asked.lengths);
  const double squared = kPrompt * (kPrompt + 2 * response) + mean_square_length(asked.lengths);
  const double each = kProducts * (kPrompt + response) * share.tokens + squared * share.squared;
  return spread * asked.dealt.sequences * each / asked.micro_batches *
         schedule_length(asked.pass, asked.micro_batches);
}

TEST(UnevenBatches, OfDrawnLengthsAreExpectedAsTheirSchedulesTakeOnAverage) {
  double most = 0;  // that equal micro-batches are too short by
  for (const double cv : {0.5, 1.0}) {
    const LengthSpec lengths{.mean = 512, .cv = cv, .max = 4096};
    for (const bool training : {true, false}) {
      for (const Drawn& asked : {Drawn{lengths, {16, 1}, 16, {16, 3, training}},
                                 Drawn{lengths, {16, 1}, 16, {16, 1, training}},
                                 Drawn{lengths, {16, 1}, 8, {4, 2, training}},
                                 Drawn{lengths, {16, 4}, 4, {4, 1, training}},
                                 Drawn{lengths, {8, 2}, 8, {4, 2, training}},
                                 Drawn{lengths, {8, 4}, 8, {8, 1, training}},
                                 Drawn{lengths, {4, 8}, 4, {2, 2, training}},
                                 Drawn{lengths, {4, 4}, 4, {4, 1, training}, 4},
                                 Drawn{lengths, {8, 4}, 4, {2, 4, training}, 4},
                                 Drawn{lengths, {7, 3}, 5, {4, 1, training}},
                                 Drawn{lengths, {32, 1}, 32, {8, 2, training}},
                                 Drawn{lengths, {48, 2}, 16, {8, 1, training}}}) {
        FewSequences few(lengths, kPrompt);
        const double spread =
            few.spread(asked.dealt, asked.together, asked.micro_batches, asked.pass);
        const double drawn = mean_of_draws(asked, 200);
        EXPECT_NEAR(planned(asked, spread) / drawn, 1, 0.06)
            << told(asked.pass, static_cast<std::size_t>(asked.micro_batches)) << ", "
            << asked.dealt.sequences << " sequences on " << asked.dealt.replicas << ", cv " << cv;
        most = std::max(most, drawn / planned(asked, 1));
      }
    }
  }
  EXPECT_GT(most, 1.5);
}

// In verl's order, which the schedule of the fullest first says to take longer.
TEST(UnevenBatches, WithTheSmallestAtBothEndsAreExpectedAsTheirSchedulesTakeOnAverage) {
  const LengthSpec lengths{.mean = 512, .cv = 1, .max = 4096};
  double most = 0;  // that the fullest first are too long by
  for (const bool training : {true, false}) {
    for (const StagedPass& pass : {StagedPass{4, 1, training}, StagedPass{8, 1, training},
                                   StagedPass{4, 2, training}, StagedPass{2, 4, training}}) {
      for (const int count : {8, 16}) {
        const Drawn asked{lengths, {16, 1}, count, pass, 1, BatchOrder::fullest_within};
        FewSequences own(lengths, kPrompt, asked.order), other(lengths, kPrompt);
        const double drawn = mean_of_draws(asked, 200);
        const double first = other.spread(asked.dealt, 1, count, pass);
        EXPECT_NEAR(planned(asked, own.spread(asked.dealt, 1, count, pass)) / drawn, 1, 0.05)
            << told(pass, static_cast<std::size_t>(count));
        most = std::max(most, planned(asked, first) / drawn);
      }
    }
  }
  EXPECT_GT(most, 1.06);
}

TEST(UnevenBatches, AddNothingToOneStageOneMicroBatchAndEqualLengths) {
  FewSequences few({.mean = 512, .cv = 1, .max = 4096}, kPrompt);
  EXPECT_EQ(few.spread({8, 2}, 1, 4, {1, 1, true}), 1);
  EXPECT_EQ(few.spread({8, 2}, 1, 1, {4, 1, true}), 1);
  EXPECT_EQ(few.spread({4096, 2}, 1, 200, {4, 1, true}), 1);  // 20 sequences each
  FewSequences equal({.mean = 512, .cv = 0, .max = 512}, kPrompt);
  EXPECT_EQ(equal.spread({8, 2}, 1, 4, {4, 1, true}), 1);
}

}  // namespace
}  // namespace tessera
