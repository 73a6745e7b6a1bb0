// The spread of a step over draws of its lengths, against simulations of one draw each.
#include "simulator/engine/spread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "planner/plan/plan.h"
#include "simulator/engine/report.h"
#include "simulator/engine/simulate.h"
#include "tests/simulator/sample_plans.h"

namespace tessera {
namespace {

/// A rollout of 16 sequences whose lengths spread, and the training of what comes out.
Plan spread_plan(double cv) {
  Plan plan = plan_of_calls({{Phase::gen, Role::rollout, CallKind::generate, {"prompts"}, {"r"}},
                             {Phase::update_actor, Role::actor, CallKind::train, {"r"}, {}}});
  plan.workload.response_tokens = {60, cv, 200};
  plan.roles = {hand_role(plan, Role::actor, 0, 1, 1, 2, 400),
                hand_role(plan, Role::rollout, 0, 1, 1, 2, 400)};
  return plan;
}

TEST(Spread, IsThatOfSimulationsOneByOne) {
  const Plan plan = spread_plan(0.6);
  const Calibration calibration = arithmetic_only();
  constexpr int kDraws = 11;  // a tenth is one place
  std::vector<double> steps, generation;
  for (int draw = 0; draw < kDraws; ++draw) {
    const Simulation one =
        simulate(plan, calibration, {.seed = 5 + static_cast<std::uint64_t>(draw)});
    steps.push_back(one.step_s);
    generation.push_back(one.phases_s.at(Phase::gen));
  }
  const StepSpread spread = spread_over_draws(plan, calibration, {.seed = 5}, kDraws);
  EXPECT_EQ(spread.draws, kDraws);
  const double mean = std::accumulate(steps.begin(), steps.end(), 0.0) / kDraws;
  double squares = 0;
  for (const double step : steps) squares += (step - mean) * (step - mean);
  EXPECT_NEAR(spread.draws_deviation_s, std::sqrt(squares / (kDraws - 1)), 1e-12);
  std::sort(steps.begin(), steps.end());
  std::sort(generation.begin(), generation.end());
  EXPECT_DOUBLE_EQ(spread.step_s.p10, steps[1]);
  EXPECT_DOUBLE_EQ(spread.step_s.p50, steps[5]);
  EXPECT_DOUBLE_EQ(spread.step_s.p90, steps[9]);
  EXPECT_DOUBLE_EQ(spread.phases_s.at(Phase::gen).p50, generation[5]);
  EXPECT_LT(spread.step_s.p10, spread.step_s.p90);
}

TEST(Spread, QuantilesBetweenDrawsAreInterpolated) {
  const Plan plan = spread_plan(0.6);
  const Calibration calibration = arithmetic_only();
  const double first = simulate(plan, calibration, {.seed = 0}).step_s;
  const double second = simulate(plan, calibration, {.seed = 1}).step_s;
  ASSERT_NE(first, second);
  const Quantiles two = spread_over_draws(plan, calibration, {}, 2).step_s;
  EXPECT_DOUBLE_EQ(two.p50, (first + second) / 2);
  EXPECT_NEAR(two.p90 - two.p10, 0.8 * std::abs(first - second), 1e-12);
}

TEST(Spread, OfEqualLengthsIsTheConstantsAlone) {
  Plan plan = spread_plan(0);
  plan.prediction.step_error_s = Seconds{0.25};
  const StepSpread spread = spread_over_draws(plan, arithmetic_only(), {}, 5);
  EXPECT_EQ(spread.step_s.p10, spread.step_s.p90);
  EXPECT_NEAR(spread.draws_deviation_s, 0, 1e-12);
  EXPECT_NEAR(spread.deviation_s, 0.25, 1e-12);
  plan = spread_plan(0.6);
  plan.prediction.step_error_s = Seconds{0.25};
  const StepSpread both = spread_over_draws(plan, arithmetic_only(), {}, 5);
  EXPECT_GT(both.draws_deviation_s, 0);
  EXPECT_DOUBLE_EQ(both.deviation_s * both.deviation_s,
                   both.draws_deviation_s * both.draws_deviation_s + 0.0625);
}

TEST(Spread, IsToldInTextAndJson) {
  const Plan plan = spread_plan(0.6);
  const Calibration calibration = arithmetic_only();
  const Simulation one = simulate(plan, calibration);
  const StepSpread spread = spread_over_draws(plan, calibration, {}, 20);
  const std::string text = to_text(one, plan, calibration, spread);
  EXPECT_THAT(text, testing::HasSubstr("over 20 draws"));
  EXPECT_THAT(to_text(one, plan, calibration), testing::Not(testing::HasSubstr("draws")));
  const auto json = nlohmann::json::parse(to_json(one, plan, calibration, spread));
  EXPECT_EQ(json["spread"]["step_s"]["p90"], spread.step_s.p90);
  EXPECT_EQ(json["spread"]["phases_s"]["gen"]["p10"], spread.phases_s.at(Phase::gen).p10);
  EXPECT_FALSE(nlohmann::json::parse(to_json(one, plan, calibration)).contains("spread"));
}

}  // namespace
}  // namespace tessera
