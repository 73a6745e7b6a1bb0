#include "simulator/timeline/comparison.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

Plan plan_with_prediction() {
  Plan plan;
  plan.prediction.step_s = 0.30;
  plan.prediction.phases_s = {{Phase::gen, 0.12}, {Phase::update_actor, 0.15}};
  plan.reshard.push_back({.bytes_received = 4096});
  return plan;
}

std::vector<StepNumbers> run_of(double bytes) {
  return {{1, {{"timing_s/step", 9.0}, {"timing_s/gen", 8.0}, {"reshard/bytes", bytes}}},
          {2, {{"timing_s/step", 0.40}, {"timing_s/gen", 0.10}, {"reshard/bytes", bytes}}},
          {3, {{"timing_s/step", 0.20}, {"timing_s/gen", 0.14}, {"reshard/bytes", bytes}}}};
}

TEST(Comparison, MeansLeaveTheWarmUpOut) {
  const Comparison result = compare(plan_with_prediction(), run_of(4096), 1);
  ASSERT_EQ(result.phases.size(), 3u);
  EXPECT_EQ(result.steps, 2);
  EXPECT_EQ(result.phases[0].phase, "gen");
  EXPECT_NEAR(result.phases[0].measured_s, 0.12, 1e-12);
  EXPECT_NEAR(result.phases[0].relative_error(), 0, 1e-12);
  EXPECT_NEAR(result.phases[0].measured_deviation_s, 0.02, 1e-12);
  EXPECT_EQ(result.phases[2].phase, "step");
  EXPECT_NEAR(result.phases[2].measured_s, 0.30, 1e-12);
}

TEST(Comparison, APhaseThatOnlyThePlanHasIsShownAsNotMeasured) {
  const Comparison result = compare(plan_with_prediction(), run_of(4096), 1);
  EXPECT_EQ(result.phases[1].phase, "update_actor");
  EXPECT_EQ(result.phases[1].measured_s, 0);
}

TEST(Comparison, BytesAgreeExactlyOrNotAtAll) {
  EXPECT_TRUE(compare(plan_with_prediction(), run_of(4096)).bytes.at(0).equal());
  EXPECT_FALSE(compare(plan_with_prediction(), run_of(4100)).bytes.at(0).equal());
}

}  // namespace
}  // namespace tessera
