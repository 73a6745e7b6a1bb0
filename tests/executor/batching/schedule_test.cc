#include "executor/batching/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tessera {
namespace {

TEST(LrSchedule, ConstantWithoutWarmupIsTheRate) {
  const LrSchedule schedule{.lr = 3e-4};
  for (int step : {0, 1, 1000}) EXPECT_DOUBLE_EQ(learning_rate(schedule, step), 3e-4);
}

TEST(LrSchedule, WarmupIsLinearFromZero) {
  const LrSchedule schedule{.lr = 2.0, .warmup_steps = 4};
  const double expected[] = {0.0, 0.5, 1.0, 1.5, 2.0, 2.0};
  for (int step = 0; step < 6; ++step)
    EXPECT_DOUBLE_EQ(learning_rate(schedule, step), expected[step]);
}

TEST(LrSchedule, WarmupRatioRoundsDownAndYieldsToSteps) {
  LrSchedule schedule{.lr = 1.0, .warmup_ratio = 0.1, .total_steps = 59};
  EXPECT_EQ(warmup_steps(schedule), 5);
  schedule.warmup_steps = 7;
  EXPECT_EQ(warmup_steps(schedule), 7);
  schedule.warmup_steps = 0;
  EXPECT_EQ(warmup_steps(schedule), 5);
}

TEST(LrSchedule, CosineFollowsTheClosedForm) {
  const LrSchedule schedule{.lr = 0.5,
                            .decay = LrDecay::cosine,
                            .warmup_steps = 10,
                            .total_steps = 110,
                            .min_lr_ratio = 0.2};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 5), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 10), 0.5);
  EXPECT_NEAR(learning_rate(schedule, 60), 0.5 * 0.6, 1e-12);  // cos(pi/2) = 0
  EXPECT_NEAR(learning_rate(schedule, 35), 0.5 * (0.6 + 0.4 * std::sqrt(0.5)), 1e-12);
  EXPECT_NEAR(learning_rate(schedule, 110), 0.1, 1e-12);
}

TEST(LrSchedule, CosineReachesZeroAndNeverGoesBelowTheMinimum) {
  LrSchedule schedule{.lr = 1.0, .decay = LrDecay::cosine, .total_steps = 100};
  EXPECT_NEAR(learning_rate(schedule, 100), 0.0, 1e-15);
  schedule.min_lr_ratio = 0.1;
  for (int step = 0; step < 250; ++step) EXPECT_GE(learning_rate(schedule, step), 0.1);
}

// get_cosine_schedule_with_warmup(AdamW(lr=1), 3, 12) of transformers 5.17, LambdaLR's rates.
TEST(LrSchedule, CosineEqualsTransformers) {
  const LrSchedule schedule{
      .lr = 1.0, .decay = LrDecay::cosine, .warmup_steps = 3, .total_steps = 12};
  const double expected[] = {0.0,
                             0.3333333333333333,
                             0.6666666666666666,
                             1.0,
                             0.9698463103929542,
                             0.883022221559489,
                             0.75,
                             0.5868240888334653,
                             0.41317591116653485,
                             0.2500000000000001,
                             0.11697777844051105,
                             0.03015368960704584,
                             0.0};
  int step = 0;
  for (double rate : expected) EXPECT_NEAR(learning_rate(schedule, step++), rate, 1e-12);
}

}  // namespace
}  // namespace tessera
