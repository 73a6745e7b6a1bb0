// Plans under a risk of running out of memory. Oracles: other searches, the limit by itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "planner/engines/engine.h"
#include "planner/engines/read_plan.h"
#include "planner/explain/memory_fit.h"
#include "planner/explain/why_not.h"
#include "planner/plan/certified.h"
#include "planner/plan/plan_json.h"
#include "planner/pricing/memory_limit.h"
#include "planner/pricing/plan_pricing.h"
#include "planner/request/plan_request.h"
#include "planner/request/risk.h"
#include "tests/planner/planned.h"
#include "tests/planner/sample_requests.h"

namespace tessera {
namespace {

using testing::HasSubstr;

/// Devices so small that a plan of the 7B fills what any risk allows.
PlanRequest at_risk(double risk) {
  PlanRequest request = request_for("h100-8");
  request.cluster.device.memory = from_gib(40);
  request.engine = "verl";
  request.risk = risk;
  return request;
}

TEST(Risk, ASmallerOneNeverMakesAPlanFasterOrFuller) {
  Seconds step;
  double fits = 0;
  Bytes limit{1LL << 62};
  for (const double risk : {0.5, 0.1, 0.02, 0.001}) {
    const PlanRequest request = at_risk(risk);
    const Plan plan = planned(request);
    EXPECT_GE(plan.prediction.step_s, (1 - plan.certificate.gap) * (1 - 1e-9) * step) << risk;
    EXPECT_GE(plan.prediction.fits, 1 - risk) << risk;
    EXPECT_GE(plan.prediction.fits, fits) << risk;
    EXPECT_GT(plan.prediction.peak_error_bytes, 0);
    EXPECT_LT(usable_memory(plan, request.calibration), limit) << risk;
    EXPECT_LE(plan.prediction.peak_bytes, usable_memory(plan, request.calibration)) << risk;
    EXPECT_EQ(plan.certificate.risk, risk);
    EXPECT_EQ(certified(plan), Certified::yes);
    step = plan.prediction.step_s;
    fits = plan.prediction.fits;
    limit = usable_memory(plan, request.calibration);
  }
}

/// The plan that fills what even odds allow fits by the former rule (95 % of the device), and is
/// not what is planned now.
TEST(Risk, ThePlanAtTheVeryEdgeIsNoLongerChosen) {
  const PlanRequest careful = at_risk(kDefaultRisk), even = at_risk(0.5);
  const Plan edge = planned(even), plan = planned(careful);
  EXPECT_GT(edge.prediction.peak_bytes, usable_memory(careful));
  EXPECT_LT(edge.prediction.fits, 0.7);
  EXPECT_GE(plan.prediction.fits, 0.98);
  EXPECT_LT(plan.prediction.peak_bytes, edge.prediction.peak_bytes);
}

TEST(Risk, OneStepOfSafetyIsThePlanOfATenthOfTheRisk) {
  const Plan plan = planned(at_risk(kDefaultRisk));
  const SaferPlan& safer = plan.certificate.safer;
  ASSERT_TRUE(safer.used());
  EXPECT_DOUBLE_EQ(safer.risk, kDefaultRisk / 10);
  const Plan asked = planned(at_risk(safer.risk));
  EXPECT_NEAR(safer.plan.step_s / asked.prediction.step_s, 1,
              plan.certificate.gap + asked.certificate.gap + 1e-9);
  EXPECT_GE(safer.fits, 1 - safer.risk);
  const std::string text = describe_fit(plan, at_risk(kDefaultRisk).calibration);
  EXPECT_THAT(text, HasSubstr("  fits with 98."));
  EXPECT_THAT(text, HasSubstr("one step of safety, 99.80 %: costs +"));
  EXPECT_THAT(text, HasSubstr(std::to_string(engine_named("verl").memory.measured) +
                              " measured configurations"));
}

/// Where memory is no matter, safety costs nothing and the plan says so.
TEST(Risk, OneStepOfSafetyIsFreeWhereThereIsRoom) {
  PlanRequest request = at_risk(kDefaultRisk);
  request.cluster.device.memory = Bytes{8 * request.cluster.device.memory.value};
  const Plan plan = planned(request);
  EXPECT_EQ(plan.certificate.safer.plan.step_s, plan.prediction.step_s);
  EXPECT_THAT(describe_fit(plan, request.calibration), HasSubstr("this plan has it"));
}

/// Generation one step ahead decides the step: what the actor's GPUs hold makes it no faster. Of
/// the plans that take as long as the fastest one that even odds allow, one that holds with 95 % is
/// taken.
TEST(Risk, OfPlansThatTakeEquallyLongTheOneThatIsLikelierToSurviveIsTaken) {
  Problems problems;
  PlanRequest request = request_for("h100-64");
  request.models["actor"] = {*read_model_spec("qwen2.5-0.5b", problems), "qwen2.5-0.5b", ""};
  request.cluster.device.memory = Bytes{40LL << 30};
  request.engine = "any";
  request.one_step_off = true;
  request.risk = 0.5;
  const Plan plan = planned(request);
  EXPECT_GE(plan.prediction.fits, 0.95);
  EXPECT_EQ(plan.certificate.safer.plan.step_s, plan.prediction.step_s);
  request.risk = 0.05;
  EXPECT_EQ(planned(request).prediction.step_s, plan.prediction.step_s);
  for (const RunnerUp& other : plan.certificate.runner_up) {
    EXPECT_GE(other.step_s, (1 - 1e-9) * plan.prediction.step_s);
  }
}

/// Everything that asks about a plan again counts its bytes against the limit it was made with.
TEST(Risk, IsOfThePlanWhereverItIsPricedAgain) {
  const PlanRequest request = at_risk(0.3);
  const Plan plan = planned(request);
  EXPECT_EQ(request_of(plan, request.calibration).risk, 0.3);
  EXPECT_EQ(memory_limit(evaluator_of(plan, request.calibration).request()), memory_limit(request));
  EXPECT_EQ(usable_memory(plan, request.calibration), usable_memory(request));
  Problems problems;
  const auto again = why_not(plan, request_of(plan, request.calibration), {}, problems);
  ASSERT_TRUE(again);
  EXPECT_NEAR(again->worse, 0, plan.certificate.gap + 1e-9);
  const PlanFit fit = fit_of(plan, request.calibration);
  EXPECT_EQ(fit.probability, plan.prediction.fits);
  EXPECT_EQ(fit.deviation, plan.prediction.peak_error_bytes);
}

/// Measurements tell nothing about the tail of the normal distribution.
TEST(Risk, IsNotStatedMorePreciselyThanMemoryWasMeasured) {
  PlanRequest request = at_risk(kDefaultRisk);
  request.cluster.device.memory = from_gib(320);
  EXPECT_THAT(describe_fit(planned(request), request.calibration),
              HasSubstr("  fits with more than 99.9 %:"));
  request.engine = "verl-megatron";
  EXPECT_THAT(describe_fit(planned(request), request.calibration),
              HasSubstr("  fits with more than 99 %:"));
}

/// A reserve larger than the device leaves nothing, and is not what may be used.
TEST(Risk, LeavesAtMostTheDevicesMemory) {
  PlanRequest request = at_risk(kDefaultRisk);
  request.cluster.device.memory = from_gib(1);
  EXPECT_EQ(usable_memory(request), from_gib(1));
  EXPECT_THAT(of_usable(request, from_gib(5)), HasSubstr(" of 1.00 GiB"));
}

TEST(Risk, OfAPlanThatStatesNoneIsTheDefault) {
  const PlanRequest request = at_risk(0.3);
  Plan plan = planned(request);
  plan.certificate.risk = 0;
  plan.certificate.safer = {};
  plan.prediction.fits = 0;
  plan.prediction.peak_error_bytes = {};
  const std::string json = to_json(plan);
  for (const char* key : {"\"risk\"", "\"safer\"", "\"fits\"", "\"peak_error_bytes\""}) {
    EXPECT_EQ(json.find(key), std::string::npos) << key;
  }
  Problems problems;
  const auto again = parse_plan(json, "plan.json", problems);
  ASSERT_TRUE(again) << to_string(problems[0]);
  EXPECT_EQ(risk_of(*again), kDefaultRisk);
  EXPECT_NEAR(fit_of(*again, request.calibration).probability, 0.7, 0.02);  // told all the same
}

}  // namespace
}  // namespace tessera
