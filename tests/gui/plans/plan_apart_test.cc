// SPDX-License-Identifier: GPL-3.0-or-later
// How far apart two plans are, in one unit, and whether that means anything.
#include "gui/plans/plan_apart.h"

#include <gtest/gtest.h>

#include <cmath>

#include "planner/plan/plan.h"
#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

struct PlanApart : ::testing::Test {
  /// A step of so many seconds, which doubles with the rate of products.
  static NamedPlan named(const QString& name, double step_s, const PricedStep& priced) {
    Plan plan = free_plan();
    plan.prediction.step_s = Seconds{step_s};
    plan.prediction.phases_s = {{Phase::gen, Seconds{step_s}}};
    return {name, shared(plan), &priced};
  }
  static PricedStep priced(double communication, double computation, double sensitivity,
                           double error) {
    Calibration constants;
    constants.matmul_flops = {.value = 1e12, .error = error};
    PricedStep step{.sensitivities = {{"matmul_flop_per_s", Seconds{sensitivity}}},
                    .constants = std::make_shared<const Calibration>(constants)};
    step.parts[StepPart::communication] = Seconds{communication};
    step.parts[StepPart::computation] = Seconds{computation};
    return step;
  }
};

TEST_F(PlanApart, IsToldInOneUnit) {
  const PricedStep quick = priced(1, 9, 0, 0.1), slow = priced(8.36, 8.7783, 0, 0.1);
  EXPECT_EQ(apart_text(named("A", 10, quick), named("B", 17.1383, slow)),
            "B takes 7.14 s longer than A: communication +7.36 s, computation -0.22 s (by phase: "
            "gen +7.14 s).");
  const PricedStep evener = priced(3.88, 6.967, 0, 0.1);
  EXPECT_TRUE(apart_text(named("A", 10, quick), named("B", 10.847, evener))
                  .startsWith("B takes 0.85 s longer than A: communication +2.88 s, "));
}

// A step that takes 10 s for products errs by a tenth of that where their rate does; what both owe
// to the rate cancels.
TEST_F(PlanApart, SaysHowFarTheDifferenceMayBeOff) {
  const PricedStep quick = priced(1, 9, 10, 0.1), slow = priced(3, 9, 22, 0.1);
  EXPECT_NEAR(deviation_apart(quick, slow)->value, 0.1 * (22 - 10), 1e-9);
  EXPECT_TRUE(apart_text(named("A", 10, quick), named("B", 12, slow))
                  .startsWith("B takes 2.00 +- 1.20 s longer than A: "));
  EXPECT_TRUE(apart_text(named("A", 11, quick), named("B", 12, slow))
                  .startsWith("B takes 1.00 +- 1.20 s longer than A, less than the predictions may "
                              "be off: "));
  // Of two machines nothing is shared.
  const PricedStep elsewhere = priced(3, 9, 22, 0.2);
  EXPECT_NEAR(deviation_apart(quick, elsewhere)->value, std::hypot(1.0, 4.4), 1e-9);
  EXPECT_FALSE(deviation_apart(quick, PricedStep{}).has_value());
}

// As the search's own proof says it of the two.
TEST_F(PlanApart, IsWhatTheCertificateSays) {
  const Plan& best = free_plan();
  const Certificate& found = best.certificate;
  ASSERT_FALSE(found.runner_up.empty());
  const SharedPlan first = shared(best);
  const PlanAnswer next = answer(best, found.runner_up.front());
  const SharedPlan second = std::get<SharedPlan>(next.result);
  const PartsByPlan parts = parts_of({first, second});
  const auto deviation = deviation_apart(parts.at(first), parts.at(second));
  ASSERT_TRUE(deviation);
  const double apart = (second->prediction.step_s - best.prediction.step_s).value;
  EXPECT_NEAR(apart / deviation->value, found.margin_deviations, 0.02 * found.margin_deviations);
}

}  // namespace
}  // namespace tessera::gui
