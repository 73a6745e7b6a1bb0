// What the step depends on, against prices of plans whose constants were set by hand.
#include "simulator/engine/sensitivity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <variant>

#include "cost_models/documents/problem.h"
#include "cost_models/fit/derived_calibration.h"
#include "cost_models/fit/what_if.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "planner/pricing/solution_pricer.h"
#include "planner/request/plan_request.h"
#include "tests/planner/sample_requests.h"

namespace tessera {
namespace {

Calibration h100() {
  Problems problems;
  return find_calibration("h100", problems).value();
}

Plan plan_of_eight(const std::string& engine = "tessera") {
  Workload workload = workload_of("grpo", KlPlace::none, false);
  workload.prompts_per_step = 64;
  workload.response_tokens = {1024, 0, 1024};
  PlanRequest request = request_of(llama_8b(), workload, cluster_of(8, 1, 80));
  request.engine = engine;
  Problems problems;
  const std::vector<std::string> words = {"actor.tp=2", "actor.pp=1", "rollout.tp=2"};
  request.fixed = parse_settings(words, problems);
  return std::get<Plan>(make_plan(request, problems).value());
}

double step_of(const Plan& plan, const Calibration& calibration) {
  const PlanRequest request = priced_request_of(plan, calibration);
  return SolutionPricer(request, solution_of(plan)).price(calibration).step_s.value;
}

Calibration with(const std::string& name, double value) {
  Calibration calibration = h100();
  Problems problems;
  const std::vector<std::string> words = {name + "=" + std::to_string(value)};
  set_constants(calibration, words, problems);
  EXPECT_TRUE(problems.empty()) << to_string(problems[0]);
  return calibration;
}

TEST(StepSensitivities, AreWhatOnePerCentDoes) {
  const Plan plan = plan_of_eight();
  const auto sensitivities = step_sensitivities(plan, h100());
  ASSERT_GT(sensitivities.size(), 6U);
  const double base = step_of(plan, h100());
  int curves = 0;
  for (const StepSensitivity& each : sensitivities) {
    double value = 1.01;  // of a curve's whole time
    double error = 0;
    for (const auto& [name, member] : kConstants) {
      if (name != each.constant) continue;
      value = 1.01 * (h100().*member).value;
      error = (h100().*member).error;
    }
    if (value < 1e-3) continue;  // more digits than a word above has
    curves += each.constant.find('/') == std::string::npos ? 0 : 1;
    EXPECT_NEAR(step_of(plan, with(each.constant, value)) - base, each.percent_s,
                0.02 * std::abs(each.percent_s) + 1e-6)
        << each.constant;
    if (error > 0) {
      EXPECT_DOUBLE_EQ(each.error, error) << each.constant;
    }
    EXPECT_NEAR(each.error_s, std::abs(each.percent_s) * 100 * each.error, 1e-12);
  }
  EXPECT_GE(curves, 1);
  for (std::size_t i = 1; i < sensitivities.size(); ++i) {
    EXPECT_GE(std::abs(sensitivities[i - 1].percent_s), std::abs(sensitivities[i].percent_s));
  }
  EXPECT_THAT(to_text(sensitivities), testing::HasSubstr(sensitivities[0].constant));
}

TEST(WhatIf, ConstantsTakeTheirValueAndCurvesTheirFactor) {
  EXPECT_EQ(with("memory_bytes_per_s", 2e12).memory_bandwidth.value, 2e12);
  const Calibration slower = with("all_reduce/8x1", 2), base = h100();
  for (std::size_t i = 0; i < base.collectives.size(); ++i) {
    const bool changed = name_of(base.collectives[i]) == "all_reduce/8x1";
    EXPECT_DOUBLE_EQ(slower.collectives[i].bandwidth.value,
                     base.collectives[i].bandwidth.value / (changed ? 2 : 1));
  }
  EXPECT_DOUBLE_EQ(with("prefill_ratio", 1.5).prefill.ratio[0], 1.5 * base.prefill.ratio[0]);
}

/// Software that takes twice as long is that of an engine whose handover is twice as slow.
TEST(WhatIf, TheHandoverIsOfTheEnginesSoftware) {
  Problems problems;
  const Plan plan = plan_of_eight("verl-megatron");
  PlanRequest request = priced_request_of(plan, h100());
  const Solution solution = solution_of(plan);
  SolutionPricer pricer(request, solution);
  const double once = pricer.price(h100()).seconds[Phase::reshard].value;
  const double twice = pricer.price(with("handover", 2)).seconds[Phase::reshard].value;
  request.traits.handover.call *= 2;
  request.traits.handover.tensor *= 2;
  const double slower =
      SolutionPricer(request, solution).price(h100()).seconds[Phase::reshard].value;
  EXPECT_GT(twice, once + 1e-3);
  EXPECT_NEAR(twice, slower, 1e-12);
}

Calibration a100_and_h100() {
  Problems problems;
  const auto cluster = read_cluster_spec("a100-h100-64", problems);
  return calibration_for_cluster(cluster.value(), problems).value();
}

/// A pool is priced with the constants of its view: a name that leaves them alone does nothing.
TEST(WhatIf, EveryGpuTypeTakesTheValueOrTheOneThatIsNamed) {
  const Calibration base = a100_and_h100();
  ASSERT_GE(base.views.size(), 2U);
  ASSERT_NE(base.views[0].device, base.views[1].device);
  Problems problems;
  Calibration all = base;
  set_constants(all, std::vector<std::string>{"memory_bytes_per_s=1e12", "dispatch_s=1e-5"},
                problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(all.memory_bandwidth.value, 1e12);
  for (const Calibration& view : all.views) {
    EXPECT_EQ(view.memory_bandwidth.value, 1e12);
    EXPECT_DOUBLE_EQ(view.dispatch_s.value, 1e-5);
  }
  Calibration one = base;
  const std::string device = base.views[1].device;
  set_constants(one, std::vector<std::string>{device + ": memory_bytes_per_s=1e12"}, problems);
  EXPECT_TRUE(problems.empty());
  for (std::size_t i = 0; i < base.views.size(); ++i) {
    const bool named = base.views[i].device == device;
    EXPECT_EQ(one.views[i].memory_bandwidth.value,
              named ? 1e12 : base.views[i].memory_bandwidth.value);
  }
  set_constants(one, std::vector<std::string>{"H900: memory_bytes_per_s=1e12"}, problems);
  EXPECT_EQ(problems.size(), 1U);
}

TEST(WhatIf, AConstantIsGivenOnce) {
  Calibration calibration = h100();
  Problems problems;
  set_constants(calibration,
                std::vector<std::string>{"sustained=1.1", "dispatch_s=1e-5", "sustained=1.2"},
                problems);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].found, "'sustained=1.2'");
}

TEST(WhatIf, UnknownNamesAndValuesAreRefused) {
  Calibration calibration = h100();
  Problems problems;
  const std::vector<std::string> words = {"memory_byte_per_s=1", "sustained=0", "sustained=x",
                                          "sustained"};
  set_constants(calibration, words, problems);
  ASSERT_EQ(problems.size(), 4U);
  EXPECT_THAT(problems[0].hint, testing::HasSubstr("memory_bytes_per_s"));
  EXPECT_EQ(calibration, h100());
}

}  // namespace
}  // namespace tessera
