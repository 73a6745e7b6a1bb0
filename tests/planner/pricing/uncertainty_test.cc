// A step's deviation from the covariance of constants: against Euler's theorem, the closed form on
// a block by hand, and samples drawn from the covariance.
#include "planner/pricing/uncertainty.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "planner/request/candidate.h"
#include "planner/request/request.h"
#include "planner/request/solution.h"
#include "tests/planner/sample_requests.h"

namespace tessera {
namespace {

PlanRequest small_request() {
  Problems problems;
  Workload workload = workload_of("grpo", KlPlace::none, false);
  workload.prompts_per_step = 64;
  workload.prompt_tokens = 512;
  workload.response_tokens = {512, 0.5, 1024};
  PlanRequest request;
  request.models["actor"] = {llama_8b(), "llama", ""};
  request.cluster = cluster_of(8, 2, 80);
  request.workload = workload;
  request.calibration = *find_calibration("h100", problems);
  return request;
}

Solution sharing(int actor_tp, int rollout_tp) {
  Solution solution;
  solution.placement = {{Role::actor, Role::rollout}};
  solution.sizes = {16};
  solution.first_rank = {0};
  Candidate actor{{.tp = actor_tp, .dp = 16 / actor_tp}, Role::actor, 16, 1, 8192};
  Candidate rollout{{.tp = rollout_tp, .dp = 16 / rollout_tp}, Role::rollout, 16, 0, 8192, 32};
  solution.choice = {{Role::actor, actor}, {Role::rollout, rollout}};
  return solution;
}

double sum_of(const std::vector<Sensitivity>& all, const std::string& name) {
  double sum = 0;
  for (const Sensitivity& each : all) sum += each.of == name ? each.seconds : 0;
  return sum;
}

// A step is homogeneous in seconds: with every duration longer and every rate lower by a part, it
// is longer by that part (Euler's theorem).
TEST(Uncertainty, DerivativesByDurationsLessThoseByRatesAreTheStep) {
  const PlanRequest request = small_request();
  const Solution solution = sharing(2, 1);
  CostEvaluator costs(request);
  double priced = 0;
  for (const auto& [role, candidate] : solution.choice) {
    for (const double seconds : costs.cost(candidate).seconds) priced += seconds;
  }
  priced += costs.reshard_seconds(solution.choice.at(Role::actor),
                                  solution.choice.at(Role::rollout), true);
  double sum = 0;
  for (const Sensitivity& each : step_sensitivities(request, solution)) {
    const bool seconds = each.of.ends_with("_s") && !each.of.ends_with("_per_s");
    if (seconds) sum += each.seconds;
    if (each.of.ends_with("_per_s") || each.of == "inter_efficiency") sum -= each.seconds;
  }
  EXPECT_NEAR(sum / priced, 1.0, 0.03);
}

TEST(Uncertainty, ABlocksCovarianceEntersWithItsSigns) {
  Calibration calibration;
  calibration.matmul_flops.error = 0.03;
  calibration.matmul_floor_s.error = 0.02;
  calibration.covariances = {{{"matmul_flop_per_s", "matmul_floor_s"}, {9e-4, 2e-4, 2e-4, 4e-4}}};
  const std::vector<Sensitivity> of = {{"matmul_flop_per_s", -10}, {"matmul_floor_s", 4}};
  // 100 x 9e-4 + 16 x 4e-4 - 2 x 40 x 2e-4
  EXPECT_NEAR(step_deviation(of, calibration), std::sqrt(0.09 + 0.0064 - 0.016), 1e-12);
}

// The deviation is that of the linearised step over samples of the constants.
TEST(Uncertainty, EqualsTheSpreadOfSampledConstants) {
  const PlanRequest request = small_request();
  const auto of = step_sensitivities(request, sharing(2, 1));
  ASSERT_FALSE(of.empty());
  const Calibration& calibration = request.calibration;
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  double squares = 0;
  constexpr int kSamples = 20000;
  for (int i = 0; i < kSamples; ++i) {
    double change = 0;
    for (const auto& [name, member] : kConstants) {
      change += sum_of(of, std::string(name)) * (calibration.*member).error * normal(random);
    }
    for (const CollectiveConstants& curve : calibration.collectives) {
      const std::string name = std::string(name_of(curve.collective)) + "/" +
                               std::to_string(curve.ranks) + "x" + std::to_string(curve.nodes);
      change += (sum_of(of, name + ".alpha_s") + sum_of(of, name + ".ramp_s") -
                 sum_of(of, name + ".bytes_per_s")) *
                curve.error * normal(random);
    }
    squares += change * change;
  }
  const double sampled = std::sqrt(squares / kSamples);
  EXPECT_NEAR(step_deviation(of, calibration) / sampled, 1.0, 0.05);  // fitted blocks are small
}

TEST(Uncertainty, WhatTwoPlansShareCancelsInTheirDifference) {
  const PlanRequest request = small_request();
  const auto a = step_sensitivities(request, sharing(2, 1));
  const auto b = step_sensitivities(request, sharing(4, 1));
  const double alone = step_deviation(a, request.calibration);
  EXPECT_GT(alone, 0);
  EXPECT_LT(step_deviation(difference(a, a), request.calibration), 1e-9);
  EXPECT_LT(step_deviation(difference(a, b), request.calibration),
            std::hypot(alone, step_deviation(b, request.calibration)));
}

TEST(Uncertainty, IsTheErrorBarOfAPlan) {
  Problems problems;
  const PlanRequest request = small_request();
  const auto outcome = make_plan(request, problems);
  const Plan& plan = std::get<Plan>(*outcome);
  EXPECT_GT(plan.prediction.step_error_s, 0.005 * plan.prediction.step_s);
  EXPECT_LT(plan.prediction.step_error_s, 0.5 * plan.prediction.step_s);
  PlanRequest certain = request;
  for (const auto& [name, member] : kConstants) (certain.calibration.*member).error = 0;
  for (CollectiveConstants& curve : certain.calibration.collectives) curve.error = 0;
  certain.calibration.covariances.clear();
  const auto exact = make_plan(certain, problems);
  EXPECT_EQ(std::get<Plan>(*exact).prediction.step_error_s, 0);
}

}  // namespace
}  // namespace tessera
