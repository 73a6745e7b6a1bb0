// A plan is judged with the constants that it was made with, whatever file they came from.
#include "planner/request/plan_constants.h"

#include <gtest/gtest.h>

#include "planner/engines/read_plan.h"
#include "planner/interop/price.h"
#include "planner/interop/repriced.h"
#include "planner/plan/certified.h"
#include "planner/plan/plan_json.h"
#include "tests/planner/planned.h"

namespace tessera {
namespace {

/// A machine that is half as fast as its data sheet's kin.
Calibration halved(Calibration calibration, const std::string& name) {
  calibration.name = name;
  calibration.matmul_flops.value /= 2;
  calibration.memory_bandwidth.value /= 2;
  return calibration;
}

Plan read_again(const Plan& plan) {
  Problems problems;
  auto again = parse_plan(to_json(plan), "plan.json", problems);
  for (const Problem& problem : problems) ADD_FAILURE() << to_string(problem);
  return again.value_or(Plan{});
}

/// A name says nothing: `tessera calibrate` calls a machine's own constants as those shipped.
TEST(PlanConstants, AMachinesOwnTravelInThePlan) {
  for (const char* name : {"mine", "h100"}) {
    PlanRequest request = ppo_request(1);
    request.calibration = halved(request.calibration, name);
    const Plan plan = read_again(planned(request));
    EXPECT_EQ(plan.provenance.calibration, name);
    ASSERT_EQ(plan.provenance.constants.size(), 1U) << name;
    Problems problems;
    const auto constants = constants_of(plan, problems);
    ASSERT_TRUE(constants);
    EXPECT_EQ(constants->other, "");
    EXPECT_EQ(constants->calibration, request.calibration);
    EXPECT_EQ(certified(plan), Certified::yes);
    EXPECT_TRUE(repriced(plan, constants->calibration).agrees());
    // Those shipped make another step of it.
    Plan other = plan;
    price(other, *calibration_for_cluster(plan.cluster, problems));
    EXPECT_LT(other.prediction.step_s.value, 0.8 * plan.prediction.step_s.value);
    EXPECT_TRUE(other.provenance.constants.empty());
  }
}

TEST(PlanConstants, ThoseShippedAreNamedWithTheirDigest) {
  for (const char* cluster : {"h100-8", "h800-h20-64", "meta-h100-24k"}) {
    const PlanRequest request = request_for(cluster);
    Plan plan{.cluster = request.cluster};
    state_constants(plan, request.calibration);
    EXPECT_TRUE(plan.provenance.constants.empty()) << cluster;
    EXPECT_EQ(plan.provenance.calibration_digest, digest_of(request.calibration));
    Problems problems;
    const auto constants = constants_of(plan, problems);
    ASSERT_TRUE(constants);
    EXPECT_EQ(constants->other, "") << cluster;
    EXPECT_EQ(constants->calibration, request.calibration);
  }
}

TEST(PlanConstants, OfSeveralGpuTypesEachViewsOwnTravel) {
  PlanRequest request = request_for("h800-h20-64");
  request.calibration.name += ", measured: mine";
  request.calibration.views.at(0) = halved(request.calibration.views.at(0), "mine");
  Plan plan{.cluster = request.cluster};
  state_constants(plan, request.calibration);
  ASSERT_EQ(plan.provenance.constants.size(), 1 + request.calibration.views.size());
  Problems problems;
  EXPECT_EQ(constants_of(plan, problems)->calibration, request.calibration);
}

TEST(PlanConstants, OthersThanThoseOfThePlanAreSaid) {
  const PlanRequest request = request_for("h100-8");
  Plan plan{.cluster = request.cluster};
  Problems problems;
  EXPECT_EQ(constants_of(plan, problems)->other, "") << "it names none";
  // A plan of a former version, whose file is not here.
  plan.provenance.calibration = "mine";
  auto constants = constants_of(plan, problems);
  EXPECT_EQ(constants->calibration.name, "h100");
  EXPECT_NE(constants->other.find("(mine) are not here: those of h100"), std::string::npos)
      << constants->other;
  // The shipped file of that name is another one by now.
  state_constants(plan, request.calibration);
  plan.provenance.calibration_digest = "0123456789abcdef";
  constants = constants_of(plan, problems);
  EXPECT_NE(constants->other.find("h100, digest 0123456789abcdef"), std::string::npos);
  EXPECT_TRUE(problems.empty());
}

TEST(PlanConstants, WhatIsNoCalibrationIsRefusedWithThePlan) {
  Plan plan = planned(digits_request());
  state_constants(plan, halved(digits_request().calibration, "mine"));
  std::string text = to_json(plan);
  const std::size_t at = text.find("\"matmul_flop_per_s\"", text.find("\"provenance\""));
  ASSERT_NE(at, std::string::npos);
  text.replace(at + 1, 6, "matmol");
  Problems problems;
  EXPECT_FALSE(parse_plan(text, "plan.json", problems));
  ASSERT_FALSE(problems.empty());
  EXPECT_NE(to_string(problems.front()).find("calibration 1 of the plan"), std::string::npos);
}

}  // namespace
}  // namespace tessera
