// Folders whose run went on under another plan, or was started again: which steps are measurements.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <variant>

#include "cost_models/documents/problem.h"
#include "planner/explain/planner.h"
#include "planner/plan/certified.h"
#include "planner/plan/plan.h"
#include "simulator/learn/learned_report.h"
#include "simulator/learn/learned_runs.h"
#include "simulator/learn/run_comparison.h"
#include "tests/planner/sample_requests.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Plan plan_with(const std::string& fixed) {
  PlanRequest request =
      request_of(llama_8b(), workload_of("grpo", KlPlace::none, false), cluster_of(8, 1, 80));
  Problems problems;
  const std::vector<std::string> settings{fixed, "actor.pp=1"};
  request.fixed = parse_settings(settings, problems);
  auto outcome = make_plan(request, problems);
  EXPECT_TRUE(outcome.has_value()) << (problems.empty() ? "" : to_string(problems[0]));
  return std::get<Plan>(std::move(*outcome));
}

Calibration h100() {
  Problems problems;
  return find_calibration("h100", problems).value();
}

/// Stopped behind step 4, on behind it under another layout, and killed once behind step 7: the log
/// has each step once, as the plan of then predicted it.
std::vector<StepNumbers> steps_of(const Plan& before, const Plan& now) {
  std::vector<StepNumbers> lines;
  for (std::int64_t number = 1; number <= 10; ++number) {
    const Plan& plan = number <= 4 ? before : now;
    const std::int64_t start = number <= 4 ? 0 : number <= 7 ? 4 : 7;
    StepNumbers line{.step = number};
    for (const auto& [phase, seconds] : plan.prediction.phases_s) {
      line.data["timing_s/" + std::string(name_of(phase))] = seconds.value;
    }
    line.data["timing_s/step"] = plan.prediction.step_s.value;
    line.data["plan/number"] = run_number(plan);
    line.data["training/steps_since_start"] = static_cast<double>(number - start);
    lines.push_back(std::move(line));
  }
  return lines;
}

TEST(OtherPlans, OnlyStepsOfThePresentPlanCount) {
  const Plan before = plan_with("actor.tp=2"), now = plan_with("actor.tp=8");
  ASSERT_NE(run_number(before), run_number(now));
  const std::vector<StepNumbers> lines = steps_of(before, now);
  Problems problems;
  const MeasuredRun run = *measured_run("on", now, lines, std::nullopt, problems);
  std::vector<std::int64_t> numbers;
  for (const StepNumbers& each : run.steps) numbers.push_back(each.step);
  EXPECT_THAT(numbers, ElementsAre(6, 7, 9, 10));  // 5 and 8 are the first of their starts
  EXPECT_EQ(run.warm_up, 2U);
  EXPECT_EQ(run.of_other_plans, 4U);
  const RunComparison compared = compare_run(run, h100());
  EXPECT_NEAR(compared.times.phases.back().measured_s, now.prediction.step_s.value, 1e-9);
  const std::string line = "steps that other plans of the folder ran, left out: 4\n";
  EXPECT_THAT(to_text(compared), HasSubstr(line));
  EXPECT_THAT(to_json(compared), HasSubstr("\"of_other_plans\": 4"));
  EXPECT_THAT(to_text(learn_from_runs({run}, h100())), HasSubstr(line));
}

/// The run's own choices make no other plan; without a step of its own there is nothing to compare.
TEST(OtherPlans, TransportsMakeNoOtherPlan) {
  const Plan before = plan_with("actor.tp=2");
  Plan now = plan_with("actor.tp=8");
  std::vector<StepNumbers> lines = steps_of(before, now);
  for (PlannedReshard& pair : now.reshard) pair.transport = ReshardTransport::send_recv;
  Problems problems;
  EXPECT_EQ(measured_run("sent", now, lines, std::nullopt, problems)->of_other_plans, 4U);
  lines.resize(4);
  EXPECT_FALSE(measured_run("none yet", now, lines, std::nullopt, problems));
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems.front().found, "4 steps, all of them of other plans");
}

}  // namespace
}  // namespace tessera
