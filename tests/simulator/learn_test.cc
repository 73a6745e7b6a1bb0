// Runs of a known machine, made by the simulator with drawn lengths and noise: learning must find
// that machine, and predict a run that it has not seen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>
#include <variant>

#include "cost_models/documents/problem.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "simulator/engine/simulate.h"
#include "simulator/learn/learned_report.h"
#include "simulator/learn/learned_runs.h"
#include "simulator/timeline/measured_phase.h"
#include "tests/planner/sample_requests.h"

namespace tessera {
namespace {

PlanRequest request_for(std::int64_t prompt_tokens, std::int64_t response) {
  Workload workload = workload_of("grpo", KlPlace::none, false);
  workload.prompts_per_step = 64;
  workload.samples_per_prompt = 8;
  workload.prompt_tokens = prompt_tokens;
  workload.response_tokens = {static_cast<double>(response), 0, response};
  return request_of(llama_8b(), workload, cluster_of(8, 1, 80));
}

Plan plan_for(std::int64_t prompt_tokens, std::int64_t response,
              const std::vector<std::string>& fixed) {
  PlanRequest request = request_for(prompt_tokens, response);
  Problems problems;
  request.fixed = parse_settings(fixed, problems);
  auto outcome = make_plan(request, problems);
  EXPECT_TRUE(outcome.has_value()) << (problems.empty() ? "" : to_string(problems[0]));
  return std::get<Plan>(std::move(*outcome));
}

/// Other layouts and lengths, so that the constants have other parts in each.
std::vector<Plan> plans() {
  return {plan_for(512, 1024, {"actor.tp=2", "actor.pp=1", "rollout.tp=1"}),
          plan_for(128, 256, {"actor.tp=1", "actor.pp=1", "rollout.tp=2"}),
          plan_for(2048, 512, {"actor.tp=4", "actor.pp=1", "rollout.tp=4"}),
          plan_for(4096, 128, {"actor.tp=2", "actor.pp=1", "rollout.tp=2"})};
}

Calibration machine() {
  Problems problems;
  Calibration machine = find_calibration("h100", problems).value();
  machine.matmul_flops.value *= 0.8;
  machine.memory_bandwidth.value *= 0.85;
  return machine;
}

/// Steps as metrics.jsonl has them: the first one slow, the others with 1 % of noise.
std::vector<StepNumbers> steps_of(const Plan& plan, const Calibration& truth, int steps,
                                  std::uint64_t seed) {
  const Simulation simulation = simulate(plan, truth, {});
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, 0.01);
  std::vector<StepNumbers> result;
  const auto response = static_cast<double>(plan.workload.response_tokens.max);
  for (int step = 1; step <= steps; ++step) {
    StepNumbers numbers{.step = step};
    double sum = 0;
    for (const auto& [phase, seconds] : simulation.phases_s) {
      const double drawn = seconds * std::exp(normal(random)) * (step == 1 ? 3 : 1);
      numbers.data["timing_s/" + std::string(name_of(phase))] = drawn;
      sum += drawn;
    }
    numbers.data["timing_s/step"] = sum;
    numbers.data["response_length/mean"] = response;
    numbers.data["response_length/max"] = response;
    numbers.data["response_length/min"] = response;
    numbers.data["response_length/clip_ratio"] = 1;
    numbers.data["perf/max_memory_allocated_gb"] = 40;
    numbers.data["perf/max_memory_reserved_gb"] = 44;
    result.push_back(std::move(numbers));
  }
  return result;
}

MeasuredRun run_of(const std::string& name, const Plan& plan, std::vector<StepNumbers> steps) {
  Problems problems;
  auto run = measured_run(name, plan, std::move(steps), std::nullopt, problems);
  EXPECT_TRUE(run.has_value());
  return *std::move(run);
}

std::vector<MeasuredRun> runs_of(const Calibration& truth) {
  std::vector<MeasuredRun> runs;
  std::uint64_t seed = 1;
  for (const Plan& plan : plans()) {
    runs.push_back(run_of("run " + std::to_string(seed), plan, steps_of(plan, truth, 6, seed)));
    ++seed;
  }
  return runs;
}

Calibration shipped() {
  Problems problems;
  return find_calibration("h100", problems).value();
}

const LearnedRuns& learned_machine() {
  static const LearnedRuns learned = learn_from_runs(runs_of(machine()), shipped());
  return learned;
}

/// Both rates that differ, and they alone.
TEST(Learn, FindsTheMachineBehindSimulatedRuns) {
  const Calibration truth = machine();
  std::vector<std::string> moved;
  for (const LearnedConstant& each : learned_machine().learned.constants) {
    if (each.fate != ConstantFate::moved) continue;
    moved.push_back(each.name);
    for (const auto& [name, member] : kConstants) {
      if (name != each.name) continue;
      const double wanted = (truth.*member).value;
      EXPECT_LT(std::abs(std::log(each.after / wanted)), 3 * each.error)
          << each.name << " " << each.before << " -> " << each.after << ", is " << wanted << " +- "
          << each.error;
      EXPECT_LT(each.error, 0.1) << each.name;
    }
  }
  EXPECT_THAT(moved, testing::UnorderedElementsAre("matmul_flop_per_s", "memory_bytes_per_s"));
}

TEST(Learn, PredictsRunsThatItHasNotSeen) {
  const LearnedRuns& learned = learned_machine();
  ASSERT_EQ(learned.held_out.size(), 4U);
  const HeldOutError error = held_out_error(learned.held_out);
  std::printf("%s", to_text(learned).c_str());
  EXPECT_GT(error.before, 0.1);
  EXPECT_LT(error.after, 0.03);
}

/// verl 0.9.1 writes actor/perf/max_memory_*_gb (trainer/ppo/ray_trainer.py).
TEST(Learn, ReadsTheMemoryOfAWorkerUnderItsRole) {
  const Plan plan = plans().front();
  std::vector<StepNumbers> steps = steps_of(plan, machine(), 3, 1);
  for (StepNumbers& step : steps) {
    for (const char* name : {"perf/max_memory_allocated_gb", "perf/max_memory_reserved_gb"}) {
      step.data[std::string("actor/") + name] = step.data.at(name) + 1;
      step.data.erase(name);
    }
  }
  const MeasuredRun run = run_of("verl", plan, std::move(steps));
  EXPECT_EQ(run.memory.allocated_gib, 41);
  EXPECT_EQ(run.memory.reserved_gib, 45);
}

TEST(Learn, OneRunHoldsTheSecondHalfOfItsStepsOut) {
  const Plan plan = plans().front();
  const auto learned =
      learn_from_runs({run_of("one", plan, steps_of(plan, machine(), 9, 5))}, shipped());
  ASSERT_EQ(learned.held_out.size(), 1U);
  EXPECT_EQ(learned.held_out[0].run, "one, steps from 6");
  EXPECT_LT(held_out_error(learned.held_out).after, 0.05);
  EXPECT_LT(held_out_error(learned.held_out).after, held_out_error(learned.held_out).before / 3);
}

/// 4 of 80 GiB that the allocator did not give out, in four runs alike.
TEST(Learn, FragmentationIsWhatTheAllocatorKeptUnused) {
  const LearnedMemory& memory = learned_machine().memory;
  EXPECT_EQ(memory.runs, 4);
  EXPECT_NEAR(memory.after, 4.0 / 80, 1e-9);
  EXPECT_NEAR(learned_machine().learned.calibration.fragmentation.value, 4.0 / 80, 1e-9);
}

TEST(Learn, WarmUpIsTheFirstStepAndSlowOnesBehindIt) {
  const auto steps = [](const std::vector<double>& seconds) {
    std::vector<StepNumbers> result;
    for (const double each : seconds) {
      result.push_back({static_cast<std::int64_t>(result.size()) + 1, {{"timing_s/step", each}}});
    }
    return result;
  };
  EXPECT_EQ(warm_up_steps(steps({69.2, 41.2, 43.8})), 1U);
  EXPECT_EQ(warm_up_steps(steps({90, 60, 50, 40, 41, 40, 39, 40})), 2U);
  EXPECT_EQ(warm_up_steps(steps({90, 60, 55, 40, 41, 40, 39, 40})), 3U);
  EXPECT_EQ(warm_up_steps(steps({40})), 0U);
  EXPECT_EQ(warm_up_steps(steps({40, 40, 40, 90})), 1U);
  Problems problems;
  EXPECT_FALSE(measured_run("none", Plan{}, {}, std::nullopt, problems));
  EXPECT_EQ(problems.size(), 1U);
}

/// verl's own name for the way of the weights; a line of validation alone is no step.
TEST(Learn, ReadsVerlsNames) {
  const Plan plan = plans().front();
  std::vector<StepNumbers> steps = steps_of(plan, machine(), 4, 2);
  for (StepNumbers& step : steps) {
    auto node = step.data.extract("timing_s/reshard");
    node.key() = "timing_s/update_weights";
    node.mapped() = 1.5;
    step.data.insert(std::move(node));
  }
  steps.insert(steps.begin(), StepNumbers{0, {{"val-core/acc", 0.5}}});
  const MeasuredRun run = run_of("verl", plan, steps);
  EXPECT_EQ(run.warm_up, 1U);
  EXPECT_EQ(run.steps.size(), 3U);
  double reshard = 0;
  for (const MeasuredPhase& each : means_of(run).phases) {
    if (each.phase == Phase::reshard) reshard = each.seconds.mean;
  }
  EXPECT_NEAR(reshard, 1.5, 1e-12);
}

/// Responses half as long as planned are no fault of the machine's.
TEST(Learn, LengthsThatTheRunMeasuredArePriced) {
  const Plan plan = plan_for(512, 1024, {"actor.tp=2", "actor.pp=1", "rollout.tp=1"});
  Plan shorter = plan;
  shorter.workload.response_tokens = {512, 0, 1024};
  std::vector<StepNumbers> steps = steps_of(shorter, shipped(), 6, 3);
  for (StepNumbers& step : steps) {
    for (const char* name : {"mean", "max", "min"}) {
      step.data[std::string("response_length/") + name] = 512;
    }
    step.data["response_length/clip_ratio"] = 0;
  }
  const LearnedRuns learned = learn_from_runs({run_of("short", plan, steps)}, shipped());
  EXPECT_EQ(learned.runs[0].lengths, (LengthSpec{512, 0, 1024}));
  EXPECT_LT(held_out_error(learned.held_out).before, 0.1);
}

/// Nor are prompts a third as long as planned.
TEST(Learn, PromptsThatTheRunMeasuredArePriced) {
  const Plan plan = plan_for(1536, 256, {"actor.tp=2", "actor.pp=1", "rollout.tp=1"});
  Plan shorter = plan;
  shorter.workload.prompt_tokens = 512;
  std::vector<StepNumbers> steps = steps_of(shorter, shipped(), 6, 3);
  for (StepNumbers& step : steps) step.data["prompt_length/mean"] = 511.6;
  const MeasuredRun run = run_of("short prompts", plan, steps);
  EXPECT_EQ(run.plan.workload.prompt_tokens, 512);
  EXPECT_EQ(run.planned.prompt_tokens, 1536);
  EXPECT_EQ(run.plan.workload.longest_prompt(), 1536);
  const LearnedRuns learned = learn_from_runs({run}, shipped());
  EXPECT_LT(held_out_error(learned.held_out).before, 0.1);
  EXPECT_NE(to_text(learned).find("prompts: mean 512 tokens, planned 1536"), std::string::npos);
}

/// Work that a run did not do makes rates that no device of the kind has.
TEST(Learn, ARateAboveTheDevicesPeakIsPointedOut) {
  const Plan plan = plan_for(1536, 256, {"actor.tp=2", "actor.pp=1", "rollout.tp=1"});
  std::vector<StepNumbers> steps = steps_of(plan, shipped(), 6, 3);
  for (StepNumbers& step : steps) {
    double sum = 0;
    for (auto& [name, value] : step.data) {
      if (!name.starts_with("timing_s/") || name == "timing_s/step") continue;
      value /= 3;
      sum += value;
    }
    step.data["timing_s/step"] = sum;
  }
  const LearnedRuns learned = learn_from_runs({run_of("idle", plan, steps)}, shipped());
  const auto& constants = learned.learned.constants;
  const auto above = std::find_if(constants.begin(), constants.end(),
                                  [](const auto& each) { return each.above_peak(); });
  ASSERT_NE(above, constants.end()) << to_text(learned);
  EXPECT_GT(above->after, above->name == "matmul_flop_per_s" ? plan.cluster.device.peak_bf16.value
                                                             : plan.cluster.device.hbm.value);
  EXPECT_NE(to_text(learned).find("that the device is stated to reach"), std::string::npos);
  for (const LearnedConstant& each : learned_machine().learned.constants) {
    EXPECT_FALSE(each.above_peak()) << each.name;
  }
}

TEST(Learn, ResponsesBeyondThePlansLimitAreOfAnotherPlan) {
  const Plan plan = plans().front();
  std::vector<StepNumbers> steps = steps_of(plan, shipped(), 4, 3);
  for (StepNumbers& step : steps) {
    step.data["response_length/mean"] = 900;
    step.data["response_length/max"] = 9000;
    step.data["response_length/min"] = 20;
  }
  Problems problems;
  EXPECT_FALSE(measured_run("long", plan, steps, std::nullopt, problems));
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].found, "9000 tokens");
  EXPECT_NE(problems[0].expected.find("1024"), std::string::npos) << problems[0].expected;
}

/// A log without the longest and the shortest says nothing of the spread.
TEST(Learn, ASpreadThatIsNotLoggedIsThePlans) {
  Plan plan = plans().front();
  plan.workload.response_tokens = {600, 0.5, 1024};
  std::vector<StepNumbers> steps = steps_of(plan, shipped(), 4, 3);
  for (StepNumbers& step : steps) {
    for (const char* name : {"max", "min", "clip_ratio"}) {
      step.data.erase(std::string("response_length/") + name);
    }
    step.data["response_length/mean"] = 500;
  }
  EXPECT_EQ(run_of("mean", plan, steps).plan.workload.response_tokens.cv, 0.5);
}

/// Steps 1 to 6, resumed behind the checkpoint of step 4: 5 and 6 again, then 7 and 8.
TEST(Learn, AResumedRunsStepsCountOnce) {
  const auto step = [](std::int64_t number, double seconds) {
    return StepNumbers{number, {{"timing_s/step", seconds}, {"response_length/mean", 512}}};
  };
  std::vector<StepNumbers> lines;
  for (std::int64_t number = 1; number <= 6; ++number) lines.push_back(step(number, 10));
  for (std::int64_t number = 5; number <= 8; ++number) lines.push_back(step(number, 20));
  const MeasuredRun run = run_of("resumed", plans().front(), lines);
  std::vector<std::int64_t> numbers;
  for (const StepNumbers& each : run.steps) numbers.push_back(each.step);
  EXPECT_THAT(numbers, testing::ElementsAre(2, 3, 4, 6, 7, 8));
  EXPECT_EQ(run.warm_up, 2U);
  EXPECT_NEAR(means_of(run).step.mean, 15, 1e-9);
  std::vector<StepNumbers> twice;
  for (std::int64_t number = 1; number <= 3; ++number) {
    twice.insert(twice.end(), 2, step(number, 10));
  }
  EXPECT_EQ(run_of("twice", plans().front(), twice).steps.size(), 2U);
}

/// verl's trainer waits 0.1 s for what the rollout's own GPUs generate in many seconds: that is no
/// rate of theirs.
TEST(Learn, AWaitForARolloutBesideTheTrainerIsNotItsTime) {
  PlanRequest request = request_for(512, 1024);
  request.engine = "verl";
  request.one_step_off = true;
  Problems problems;
  const std::vector<std::string> fixed = {"actor.gpus=4", "rollout.gpus=4", "actor.pp=1"};
  request.fixed = parse_settings(fixed, problems);
  auto outcome = make_plan(request, problems);
  ASSERT_TRUE(outcome) << to_string(problems.at(0));
  const Plan plan = std::get<Plan>(*std::move(outcome));
  std::vector<StepNumbers> steps;
  for (int step = 1; step <= 6; ++step) {
    StepNumbers numbers{.step = step};
    for (const auto& [phase, seconds] : plan.prediction.phases_s) {
      numbers.data["timing_s/" + std::string(name_of(phase))] = seconds.value;
    }
    ASSERT_GT(numbers.data.at("timing_s/gen"), 5);
    numbers.data["timing_s/gen"] = 0.1;
    numbers.data["timing_s/step"] = plan.prediction.step_s.value;
    steps.push_back(std::move(numbers));
  }
  const MeasuredRun run = run_of("beside", plan, steps);
  EXPECT_THAT(run.waits, testing::ElementsAre(Phase::gen));
  const LearnedRuns learned = learn_from_runs({run}, shipped());
  for (const LearnedConstant& each : learned.learned.constants) {
    EXPECT_NE(each.fate, ConstantFate::moved) << each.name;
  }
  EXPECT_NE(to_text(learned).find("gen: left out"), std::string::npos);
  Plan own = plan;
  own.engine = "tessera";
  EXPECT_TRUE(run_of("own", own, steps).waits.empty());
}

/// That nothing moved is agreement only where the phases are close.
TEST(Learn, PhasesAgreeOnlyWhereTheyDo) {
  LearnedRuns result;
  result.runs.push_back({.name = "run", .phases = {{"gen", 2, 0.1, 2, 2}, {"step", 2, 0.1, 2, 2}}});
  result.learned.spread_before = 0.5;
  EXPECT_NE(to_text(result).find("the phases agree"), std::string::npos);
  result.learned.spread_before = 5;
  EXPECT_NE(to_text(result).find("none explains how far"), std::string::npos);
  EXPECT_EQ(to_text(result).find("the phases agree"), std::string::npos);
  result.learned.spread_before = 0;
  result.runs[0].phases.erase(result.runs[0].phases.begin());
  EXPECT_NE(to_text(result).find("time no phase of their plans"), std::string::npos);
}

TEST(Learn, JsonIsAsTheSchemaSays) {
  std::ifstream in(std::string(TESSERA_SOURCE_DIR) + "/docs/schemas/learned.schema.json");
  const auto text = nlohmann::json::parse(in);
  valijson::Schema schema;
  valijson::SchemaParser parser;
  parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(text), schema);
  auto document = nlohmann::json::parse(to_json(learned_machine()));
  valijson::Validator validator;
  EXPECT_TRUE(
      validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(document), nullptr));
  document.erase("held_out");
  EXPECT_FALSE(
      validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(document), nullptr));
}

}  // namespace
}  // namespace tessera
