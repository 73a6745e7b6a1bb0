// Oracle: 1F1B by its definition, operation after operation.
#include "cost_models/pipeline/pipeline_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace tessera {
namespace {

using Times = std::vector<double>;

// Ends of every operation are found again and again until nothing is left to change: longest paths.
double by_definition(const Times& forward, const Times& backward, int count) {
  const std::size_t stages = forward.size();
  const auto micro_batches = static_cast<std::size_t>(count);
  std::vector<Times> f_end(stages, Times(micro_batches)), b_end = f_end;
  for (std::size_t round = 0; round < 2 * (stages + micro_batches); ++round) {
    for (std::size_t s = 0; s < stages; ++s) {
      double now = 0;
      const auto do_forward = [&](std::size_t m) {
        now = f_end[s][m] = std::max(now, s > 0 ? f_end[s - 1][m] : 0) + forward[s];
      };
      const auto do_backward = [&](std::size_t m) {
        now = b_end[s][m] =
            std::max(now, s + 1 < stages ? b_end[s + 1][m] : f_end[s][m]) + backward[s];
      };
      const std::size_t ahead = std::min(stages - 1 - s, micro_batches);
      for (std::size_t m = 0; m < ahead; ++m) do_forward(m);
      for (std::size_t m = ahead; m < micro_batches; ++m) {
        do_forward(m);
        do_backward(m - ahead);
      }
      for (std::size_t m = micro_batches - ahead; m < micro_batches; ++m) do_backward(m);
    }
  }
  return b_end.front().back();
}

double one_f_one_b(const Times& forward, const Times& backward, double micro_batches) {
  const std::vector<Seconds> f(forward.begin(), forward.end()), b(backward.begin(), backward.end());
  return one_f_one_b_seconds(f, b, micro_batches).value;
}

TEST(PipelineTime, OfEqualStagesIsTheClosedForm) {
  const Times forward(4, 2.0), backward(4, 5.0);
  EXPECT_DOUBLE_EQ(one_f_one_b(forward, backward, 8), (8 + 4 - 1) * 7.0);
  EXPECT_DOUBLE_EQ(one_f_one_b(forward, backward, 2), (2 + 4 - 1) * 7.0);
}

// A slow first stage hides the pass through the others; the sum plus the slowest says 13.
TEST(PipelineTime, OfASlowFirstStageHidesTheOthers) {
  EXPECT_DOUBLE_EQ(one_f_one_b(Times{2, 0.25}, Times{2, 0.25}, 3), 12);
}

// Stages that are slow in different directions wait for one another: more than the sum and twice
// the slowest, 24.
TEST(PipelineTime, OfStagesThatAreSlowInDifferentDirectionsExceedsTheSumAndTheSlowest) {
  const Times forward{5, 1, 0}, backward{0, 5, 0};
  EXPECT_DOUBLE_EQ(one_f_one_b(forward, backward, 3), by_definition(forward, backward, 3));
  EXPECT_GT(one_f_one_b(forward, backward, 3), 11 + 2 * 6);
}

TEST(PipelineTime, OfAnyStagesIsTheLongestPathOf1F1B) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int i = 0; i < 3000; ++i) {
    const auto stages = static_cast<std::size_t>(1 + random() % 8);
    const auto count = static_cast<int>(1 + random() % 20);
    const double spread = uniform(random) < 0.5 ? 0.2 : 5;
    Times forward, backward;
    for (std::size_t s = 0; s < stages; ++s) {
      forward.push_back(1 + spread * uniform(random));
      backward.push_back(2 + spread * uniform(random));
    }
    const double expected = by_definition(forward, backward, count);
    ASSERT_NEAR(one_f_one_b(forward, backward, count) / expected, 1, 1e-12)
        << stages << " stages, " << count << " micro-batches";
  }
}

}  // namespace
}  // namespace tessera
