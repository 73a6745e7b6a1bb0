// What learned constants are worth: runs whose steps agree, drift, or share processors.
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "cost_models/documents/problem.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "simulator/learn/learned_report.h"
#include "simulator/learn/learned_runs.h"
#include "tests/planner/sample_requests.h"

namespace tessera {
namespace {

Calibration shipped() {
  Problems problems;
  return find_calibration("h100", problems).value();
}

const Plan& on_gpus() {
  static const Plan plan = [] {
    Workload workload = workload_of("grpo", KlPlace::none, false);
    workload.prompts_per_step = 64;
    workload.samples_per_prompt = 8;
    workload.prompt_tokens = 512;
    workload.response_tokens = {1024, 0, 1024};
    PlanRequest request = request_of(llama_8b(), workload, cluster_of(8, 1, 80));
    Problems problems;
    const std::vector<std::string> fixed{"actor.tp=2", "actor.pp=1", "rollout.tp=1"};
    request.fixed = parse_settings(fixed, problems);
    return std::get<Plan>(make_plan(request, problems).value());
  }();
  return plan;
}

Plan on_processors() {
  Plan plan = on_gpus();
  plan.cluster.device.name = "cpu";
  return plan;
}

/// Steps whose phases take what the GPUs' plan says, each in its factor of that.
std::vector<StepNumbers> steps_of(const std::vector<double>& factors) {
  std::vector<StepNumbers> steps;
  for (const double factor : factors) {
    StepNumbers numbers{.step = static_cast<std::int64_t>(steps.size()) + 1};
    double sum = 0;
    for (const auto& [phase, seconds] : on_gpus().prediction.phases_s) {
      numbers.data["timing_s/" + std::string(name_of(phase))] = factor * seconds.value;
      sum += factor * seconds.value;
    }
    numbers.data["timing_s/step"] = sum;
    steps.push_back(std::move(numbers));
  }
  return steps;
}

MeasuredRun run_of(const Plan& plan, std::vector<StepNumbers> steps) {
  Problems problems;
  auto run = measured_run("one", plan, std::move(steps), std::nullopt, problems);
  EXPECT_TRUE(run.has_value());
  return *std::move(run);
}

LearnedRuns lesson(const Plan& plan, const std::vector<double>& factors) {
  return learn_from_runs({run_of(plan, steps_of(factors))}, shipped());
}

TEST(LessonWorth, IsWhatTheHeldOutPartsSay) {
  const LearnedRuns better = lesson(on_gpus(), {1.4, 1.4, 1.41, 1.39, 1.4, 1.41, 1.4});
  EXPECT_EQ(worth_of(better), LessonWorth::better) << to_text(better);
  EXPECT_TRUE(to_text(better).starts_with("worth using: the steps held out are "));
  EXPECT_EQ(worth_of(lesson(on_gpus(), {1, 1, 1, 1})), LessonWorth::nothing);
  // Slow in the first half, and nearly as the calibration says in the second.
  const LearnedRuns worse =
      lesson(on_gpus(), {1.32, 1.32, 1.32, 1.32, 1.32, 1.06, 1.06, 1.06, 1.06});
  EXPECT_EQ(worth_of(worse), LessonWorth::no_better) << to_text(worse);
  EXPECT_TRUE(to_text(worse).starts_with("not worth using: the steps held out are "));
  EXPECT_EQ(worth_of(lesson(on_gpus(), {1.4})), LessonWorth::untold);
}

TEST(LessonWorth, StepsThatShareProcessorsWithOtherWorkAreNoise) {
  const std::vector<double> quiet{1.4, 1.4, 1.45, 1.35, 1.4, 1.45, 1.35};
  const std::vector<double> shared{1.4, 1.4, 1.4, 1.4, 2.1, 2.1, 2.1};
  EXPECT_EQ(noisy_run(lesson(on_processors(), quiet)), nullptr);
  const LearnedRuns noise = lesson(on_processors(), shared);
  EXPECT_EQ(worth_of(noise), LessonWorth::noise);
  EXPECT_TRUE(to_text(noise).starts_with("noise, not worth using: steps of one differ by 2"))
      << to_text(noise);
  EXPECT_NE(worth_of(lesson(on_gpus(), shared)), LessonWorth::noise) << "GPUs are not shared";
}

TEST(LessonWorth, NothingIsLearnedFromOtherDevicesThanThePlans) {
  std::vector<StepNumbers> steps = steps_of({1, 1, 1});
  EXPECT_FALSE(unlearnable(run_of(on_gpus(), steps)));
  for (StepNumbers& step : steps) step.data["plan/predicted_step_s"] = 1;
  const auto problem = unlearnable(run_of(on_gpus(), steps));
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->found, "the plan is for H100-SXM-80GB, and its ranks run on processors");
  EXPECT_FALSE(unlearnable(run_of(on_processors(), steps)));
}

}  // namespace
}  // namespace tessera
