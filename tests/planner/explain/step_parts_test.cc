// What a step is made of: the parts are the prices of the plan's own layouts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "cost_models/lengths.h"
#include "planner/engines/engine.h"
#include "planner/explain/limits.h"
#include "planner/explain/report.h"
#include "planner/plan/plan.h"
#include "planner/pricing/plan_pricing.h"
#include "planner/pricing/step_parts.h"
#include "tests/planner/explain/best_plan.h"
#include "tests/planner/planned.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

Seconds sum_of(const StepParts& parts) {
  return std::accumulate(parts.begin(), parts.end(), Seconds{});
}

Plan with(const std::vector<std::string>& words) {
  PlanRequest request = request_for("h200-8");
  request.fixed = settings(words);
  return planned(request);
}

StepParts parts_of(const Plan& plan) { return step_parts(plan, request_for("h200-8").calibration); }

TEST(StepParts, SumToTheStepAndHaveTheCommunicationThatThePlanStates) {
  for (const Plan& plan : {best_plan(), with({"actor.tp=4"}), with({"actor.pp=2"})}) {
    const StepParts parts = parts_of(plan);
    const Prediction& predicted = plan.prediction;
    EXPECT_NEAR(sum_of(parts), predicted.step_s, 1e-9 * predicted.step_s);
    EXPECT_NEAR(parts[StepPart::communication], predicted.exposed_comm_s,
                1e-9 * predicted.exposed_comm_s);  // all roles on the same ranks
    EXPECT_GT(parts[StepPart::computation], 0.3 * predicted.step_s.value);
    EXPECT_GT(parts[StepPart::host], 0);
  }
}

// With p stages and m micro-batches of even stages 1F1B and a forward pass wait for (p - 1) / m of
// what they compute.
TEST(StepParts, OnlyAPipelineHasABubble) {
  EXPECT_EQ(parts_of(with({"actor.pp=1"}))[StepPart::bubble], 0);
  const Plan piped = with({"actor.pp=4", "actor.tokens=16384"});
  const StepParts parts = parts_of(piped);
  EXPECT_GT(parts[StepPart::bubble], 0);
  EXPECT_LT(parts[StepPart::bubble], parts[StepPart::computation]);
  const StepParts smaller = parts_of(with({"actor.pp=4", "actor.tokens=8192"}));
  EXPECT_LT(smaller[StepPart::bubble], parts[StepPart::bubble]) << "more micro-batches";
}

// What runs beside the longest chain of calls takes no time of the step.
TEST(StepParts, OfBlocksThatWorkAtOnceAreThoseOfTheLongestChain) {
  const Plan plan = with({"placement=actor+reference | rollout"});
  ASSERT_GT(placement_of(plan).size(), 1u);
  const StepParts parts = parts_of(plan);
  EXPECT_NEAR(sum_of(parts), plan.prediction.step_s, 1e-9 * plan.prediction.step_s);
}

TEST(StepParts, TheLargestDifferenceIsNamedFirst) {
  StepParts one, other;
  one[StepPart::computation] = Seconds{100};
  other[StepPart::computation] = Seconds{99};
  one[StepPart::communication] = Seconds{15.8};
  other[StepPart::communication] = Seconds{23.1};
  one[StepPart::host] = other[StepPart::host] = Seconds{2};
  const auto apart = parts_apart(one, other);
  ASSERT_EQ(apart.size(), 2u);
  EXPECT_EQ(apart[0].first, StepPart::communication);
  EXPECT_NEAR(apart[0].second, 7.3, 1e-9);
  EXPECT_EQ(apart[1].first, StepPart::computation);
  EXPECT_NEAR(apart[1].second, -1, 1e-9);
  EXPECT_TRUE(parts_apart(one, one).empty());
}

// What generation takes beyond its GPUs' own steps: with a front end that takes nothing no time is
// waited for, and with one that decides every step each token that it hands over counts.
TEST(FrontEnd, IsNamedWhereGenerationWaitsForIt) {
  PlanRequest request = request_for("h200-8");
  request.engine = "verl";
  request.choices.log_probs = ToldLogProbs::told;
  request.traits = traits_of("verl", request.choices);
  const Plan plan = planned(request);
  Calibration calibration = request.calibration;
  const auto waited = [&](double serving) {
    calibration.serving.value = serving;
    return waited_for_front_end(plan, calibration);
  };
  EXPECT_EQ(waited(0), Seconds{});
  EXPECT_EQ(describe_front_end(plan, calibration), "");
  // Of front ends that take 200 and 100 times as long the difference is that of their tokens.
  const Seconds long_waited = waited(200), shorter = waited(100);
  const Workload& workload = plan.workload;
  const RolePlan& rollout = *plan.find(Role::rollout);
  const double replicas = rollout.layout.dp;
  const double tokens =
      static_cast<double>(workload.sequences()) / replicas * mean_length(workload.response_tokens);
  const double requests = std::max(1.0, static_cast<double>(workload.sequences()) / replicas / 128);
  const DecodeTraits& decode = traits_of("verl").decode;
  const Seconds each = decode.token_served + std::log2(requests) * decode.token_crowded;
  // The constant scales the engine's own host time, too, which is not waited for.
  EXPECT_LT((long_waited - shorter).value, 100 * (tokens * each).value);
  EXPECT_GT((long_waited - shorter).value, 75 * (tokens * each).value);
  calibration.serving.value = 200;
  EXPECT_THAT(describe_front_end(plan, calibration),
              HasSubstr("gen waits for the server's front end"));
  EXPECT_THAT(explain(plan, calibration), HasSubstr("gen waits for the server's front end"));
  EXPECT_THAT(explain_json(plan, calibration), HasSubstr("front_end_s"));
  EXPECT_THAT(describe(plan, &calibration), HasSubstr("gen waits for the server's front end"));
  // An engine without a server hands nothing over.
  request.engine = "tessera";
  request.traits = traits_of("tessera");
  const Plan own = planned(request);
  EXPECT_EQ(waited_for_front_end(own, calibration), Seconds{});
}

}  // namespace
}  // namespace tessera
