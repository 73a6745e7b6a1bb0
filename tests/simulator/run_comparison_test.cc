// A run beside its prediction: error bars, memory, lengths, causes; and advice from it.
#include "simulator/learn/run_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>
#include <variant>

#include "cost_models/documents/problem.h"
#include "planner/advice/run_advice.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "planner/pricing/plan_pricing.h"
#include "planner/pricing/solution_pricer.h"
#include "planner/request/plan_request.h"
#include "simulator/learn/gap_causes.h"
#include "simulator/learn/measured_run.h"
#include "tests/planner/sample_requests.h"

namespace tessera {
namespace {

using testing::HasSubstr;

PlanRequest request(const std::string& engine, const std::vector<std::string>& fixed) {
  Workload workload = workload_of("grpo", KlPlace::none, false);
  workload.prompts_per_step = 64;
  workload.samples_per_prompt = 8;
  workload.prompt_tokens = 512;
  workload.response_tokens = {1024, 0, 1024};
  PlanRequest request = request_of(llama_8b(), workload, cluster_of(8, 1, 80));
  request.engine = engine;
  Problems problems;
  request.fixed = parse_settings(fixed, problems);
  return request;
}

Plan planned(const PlanRequest& request) {
  Problems problems;
  auto outcome = make_plan(request, problems);
  EXPECT_TRUE(outcome.has_value()) << (problems.empty() ? "" : to_string(problems[0]));
  return std::get<Plan>(std::move(*outcome));
}

Calibration h100() {
  Problems problems;
  return find_calibration("h100", problems).value();
}

/// Steps that take what the plan says, but for what `change` does to them.
template <class Change>
MeasuredRun run_of(const Plan& plan, const Change& change) {
  std::vector<StepNumbers> steps;
  for (int step = 1; step <= 5; ++step) {
    StepNumbers numbers{.step = step};
    for (const auto& [phase, seconds] : plan.prediction.phases_s) {
      const double wobble = 1 + 0.002 * (step % 2 == 0 ? 1 : -1);
      numbers.data["timing_s/" + std::string(name_of(phase))] = seconds.value * wobble;
    }
    change(numbers.data);
    double sum = 0;
    for (const auto& [name, value] : numbers.data) {
      if (name.starts_with("timing_s/") && name != "timing_s/testing") sum += value;
    }
    numbers.data["timing_s/step"] = sum + numbers.data["timing_s/testing"];
    steps.push_back(std::move(numbers));
  }
  Problems problems;
  auto run = measured_run("run", plan, std::move(steps), std::nullopt, problems);
  EXPECT_TRUE(run.has_value());
  return *std::move(run);
}

const Plan& own_plan() {
  static const Plan plan = planned(request("tessera", {"actor.tp=2", "actor.pp=1"}));
  return plan;
}

const PhaseComparison& row(const RunComparison& comparison, const std::string& phase) {
  return *std::find_if(comparison.times.phases.begin(), comparison.times.phases.end(),
                       [&](const auto& each) { return each.phase == phase; });
}

using Data = std::map<std::string, double>;

void expect_schema(const std::string& name, const std::string& text) {
  std::ifstream in(std::string(TESSERA_SOURCE_DIR) + "/docs/schemas/" + name + ".schema.json");
  const auto rules = nlohmann::json::parse(in);
  valijson::Schema schema;
  valijson::SchemaParser parser;
  parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(rules), schema);
  auto document = nlohmann::json::parse(text);
  valijson::Validator validator;
  EXPECT_TRUE(
      validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(document), nullptr))
      << text;
  document.erase(document.begin());
  EXPECT_FALSE(
      validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(document), nullptr));
}

/// The step's error bar is the plan's own, and that of its phases hangs together with it.
TEST(RunComparison, ErrorBarsAreThoseOfThePlan) {
  const RunComparison result = compare_run(run_of(own_plan(), [](Data&) {}), h100());
  const double stated = own_plan().prediction.step_error_s.value;
  EXPECT_NEAR(row(result, "step").predicted_deviation_s / stated, 1, 1e-6);
  EXPECT_GT(row(result, "gen").predicted_deviation_s, 0);
  EXPECT_LT(row(result, "gen").predicted_deviation_s, stated);
  EXPECT_NEAR(row(result, "step").predicted_communication_s,
              own_plan().prediction.exposed_comm_s.value,
              0.05 * own_plan().prediction.exposed_comm_s.value + 0.05);
}

TEST(RunComparison, NamesTheLargestGapsAndWhy) {
  const double update = own_plan().prediction.phases_s.at(Phase::update_actor).value;
  const RunComparison result = compare_run(run_of(own_plan(),
                                                  [&](Data& data) {
                                                    data["timing_s/update_actor"] *= 1.4;
                                                    data["timing_s/testing"] = update;
                                                  }),
                                           h100());
  ASSERT_EQ(result.gaps.size(), 3U);
  EXPECT_EQ(result.gaps[0].what, "outside");
  EXPECT_NEAR(result.gaps[0].seconds, update, 0.01 * update);
  EXPECT_THAT(result.gaps[0].cause, HasSubstr("validation"));
  EXPECT_EQ(result.gaps[1].what, "update_actor");
  EXPECT_NEAR(result.gaps[1].seconds, 0.4 * update, 0.01 * update);
  EXPECT_THAT(result.gaps[1].cause, HasSubstr("slower than the constants say"));
  EXPECT_THAT(to_text(result), HasSubstr("largest differences"));
}

/// Saving, which only some steps do, hides nothing of what the others have outside of their phases.
TEST(RunComparison, SavingIsNoGapOfTheStepsThatDoNotSave) {
  const double update = own_plan().prediction.phases_s.at(Phase::update_actor).value;
  int step = 0;
  const RunComparison result = compare_run(run_of(own_plan(),
                                                  [&](Data& data) {
                                                    data["timing_s/testing"] = update;
                                                    if (++step == 3)
                                                      data["timing_s/save_checkpoint"] =
                                                          20 * update;
                                                  }),
                                           h100());
  ASSERT_FALSE(result.gaps.empty());
  EXPECT_EQ(result.gaps[0].what, "outside");
  EXPECT_NEAR(result.gaps[0].seconds, update, 0.01 * update);
  EXPECT_TRUE(std::none_of(result.gaps.begin(), result.gaps.end(),
                           [](const Gap& gap) { return gap.what == "save_checkpoint"; }));
}

/// verl's V1 trainer pads a batch to its longest response, and its clip_ratio is the part of these:
/// one of 64 here, none of which the limit ended.
TEST(RunComparison, TheLongestOfABatchIsNotTheLimit) {
  const auto lengths = [](double ratio, double longest) {
    return run_of(own_plan(),
                  [&](Data& data) {
                    data["response_length/mean"] = 200;
                    data["response_length/min"] = 90;
                    data["response_length/max"] = longest;
                    data["response_length/clip_ratio"] = ratio;
                  })
        .plan.workload.response_tokens;
  };
  const auto limit = static_cast<double>(own_plan().workload.response_tokens.max);
  ASSERT_GT(limit, 500);
  EXPECT_EQ(lengths(1.0 / 64, 400), lengths(0, 400));
  EXPECT_GT(lengths(1.0 / 64, limit).cv, lengths(1.0 / 64, 400).cv);
}

/// Half as many tokens as planned are said to be why generation took less.
TEST(RunComparison, OtherLengthsAreTheCause) {
  const RunComparison result =
      compare_run(run_of(own_plan(),
                         [](Data& data) {
                           data["timing_s/gen"] *= 0.55;
                           for (const char* name : {"mean", "max", "min"}) {
                             data[std::string("response_length/") + name] = 512;
                           }
                           data["prompt_length/mean"] = 300;
                         }),
                  h100());
  ASSERT_EQ(result.lengths.size(), 2U);
  EXPECT_NEAR(result.lengths[0].planned, 1024, 1e-6);
  EXPECT_NEAR(result.lengths[0].measured, 512, 1e-6);
  EXPECT_NEAR(result.lengths[1].measured, 300, 1e-9);
  const auto gen = std::find_if(result.gaps.begin(), result.gaps.end(),
                                [](const Gap& gap) { return gap.what == "gen"; });
  ASSERT_NE(gen, result.gaps.end());
  EXPECT_THAT(gen->cause, HasSubstr("responses of 512 tokens where the plan has 1024"));
}

/// Prompts shorter than planned explain a quicker pass as responses do.
TEST(RunComparison, OtherPromptsAreTheCause) {
  Plan shorter = own_plan();
  shorter.workload.prompt_tokens = 64;
  const PlanRequest request = priced_request_of(shorter, h100());
  const PricedPhases priced =
      SolutionPricer(request, solution_of(shorter), deal_of(shorter, request)).price(h100());
  const RunComparison result = compare_run(run_of(own_plan(),
                                                  [&](Data& data) {
                                                    data["timing_s/update_actor"] =
                                                        priced.seconds[Phase::update_actor].value;
                                                    data["prompt_length/mean"] = 64;
                                                  }),
                                           h100());
  EXPECT_NEAR(result.lengths.at(0).planned, 512, 1e-9);
  const auto gap = std::find_if(result.gaps.begin(), result.gaps.end(),
                                [](const Gap& each) { return each.what == "update_actor"; });
  ASSERT_NE(gap, result.gaps.end());
  EXPECT_LT(gap->seconds, 0);
  EXPECT_THAT(gap->cause, HasSubstr("prompts of 64 tokens where the plan has 512"));
}

/// Time of a phase that the log does not have is not data, logging or validation.
TEST(RunComparison, APhaseWithoutATimeIsNotMeasured) {
  const double update = own_plan().prediction.phases_s.at(Phase::update_actor).value;
  const RunComparison result = compare_run(run_of(own_plan(),
                                                  [&](Data& data) {
                                                    data.erase("timing_s/update_actor");
                                                    data["timing_s/testing"] = update;
                                                  }),
                                           h100());
  EXPECT_FALSE(row(result, "update_actor").timed);
  ASSERT_FALSE(result.gaps.empty());
  EXPECT_EQ(result.gaps[0].what, "outside");
  EXPECT_THAT(result.gaps[0].cause, HasSubstr("does not time lie in it: update_actor"));
  EXPECT_THAT(result.gaps[0].cause, testing::Not(HasSubstr("validation")));
  EXPECT_THAT(to_text(result), HasSubstr("not measured"));
  expect_schema("comparison", to_json(result));
}

/// The plan prices rules, and nothing of the user's: not on processors either.
TEST(RunComparison, TheUsersRewardFunctionsHaveNoPrice) {
  PlanRequest on_processors = request("tessera", {"actor.tp=2", "actor.pp=1"});
  on_processors.cluster.device.name = "cpu";
  const auto cause = [&](bool programs) {
    const RunComparison result = compare_run(run_of(planned(on_processors),
                                                    [&](Data& data) {
                                                      data["timing_s/reward"] = 100;
                                                      if (programs) data["reward/exposed_s"] = 99;
                                                    }),
                                             h100());
    EXPECT_EQ(result.gaps.at(0).what, "reward");
    return result.gaps.at(0).cause;
  };
  EXPECT_THAT(cause(true), HasSubstr("no price for the user's reward functions"));
  EXPECT_THAT(cause(false), testing::Not(HasSubstr("the user's")));
}

/// Ranks on processors say which step their plan promises, and nothing of a GPU's memory.
TEST(RunComparison, OtherDevicesThanThePlansAreTheCauseOfEveryPhase) {
  const auto compared = [](bool with_memory) {
    return compare_run(run_of(own_plan(),
                              [&](Data& data) {
                                for (auto& [name, value] : data) value *= 500;
                                data["plan/predicted_step_s"] = 1;
                                if (with_memory) data["perf/max_memory_allocated_gb"] = 60;
                              }),
                       h100());
  };
  const RunComparison elsewhere = compared(false);
  ASSERT_EQ(elsewhere.gaps.size(), 3U);
  for (const Gap& gap : elsewhere.gaps) {
    EXPECT_EQ(gap.cause, "the plan is for H100-SXM-80GB, and its ranks run on processors");
  }
  for (const Gap& gap : compared(true).gaps) {
    EXPECT_THAT(gap.cause, testing::Not(HasSubstr("the plan is for"))) << gap.what;
  }
}

/// The same error bar of a measured mean as tessera learn prints.
TEST(RunComparison, MeasurementsHaveTheDeviationThatLearnTakes) {
  const MeasuredRun run = run_of(own_plan(), [](Data&) {});
  const RunComparison result = compare_run(run, h100());
  for (const MeasuredPhase& each : means_of(run).phases) {
    const PhaseComparison& shown = row(result, std::string(name_of(each.phase)));
    EXPECT_EQ(shown.measured_deviation_s, each.seconds.deviation);
    EXPECT_EQ(shown.measured_s, each.seconds.mean);
  }
}

TEST(RunComparison, EveryRuleOfTheTableIsReached) {
  const GapFacts plain{.what = "update_actor",
                       .phase = Phase::update_actor,
                       .predicted_s = 10,
                       .measured_s = 13,
                       .kind = CallKind::train,
                       .constant = "sustained",
                       .constant_s = 0.05};
  EXPECT_THAT(cause_of(plain), HasSubstr("slower than the constants say; it depends most on sust"));
  GapFacts facts = plain;
  facts.on_processors = true;
  EXPECT_THAT(cause_of(facts), HasSubstr("ranks share the processors"));
  facts.measured_s = 8;  // sharing makes nothing faster
  EXPECT_THAT(cause_of(facts), HasSubstr("faster"));
  facts = plain;
  facts.measured_s = 8;
  EXPECT_THAT(cause_of(facts), HasSubstr("faster"));
  facts.constant_s = 2e-4;
  EXPECT_THAT(cause_of(facts), HasSubstr("(0.0002 s a per cent)"));
  facts.constant_s = 0;
  EXPECT_THAT(cause_of(facts), HasSubstr("faster than the constants say, none of which moves it"));
  facts = plain;
  facts.outside = true;
  EXPECT_THAT(cause_of(facts), HasSubstr("between the calls"));
  facts.untimed = "gen";
  EXPECT_THAT(cause_of(facts), HasSubstr("phases that the run does not time"));
  facts = plain;
  facts.predicted_s = 0;
  EXPECT_THAT(cause_of(facts), HasSubstr("no price"));
  facts = plain;
  facts.waited = true;
  EXPECT_THAT(cause_of(facts), HasSubstr("beside the trainer"));
  facts = plain;
  facts.other_devices = "the plan is for H100, and its ranks run on processors";
  EXPECT_EQ(cause_of(facts), facts.other_devices);
  facts = plain;
  facts.measured_deviation_s = 2;
  EXPECT_THAT(cause_of(facts), HasSubstr("more steps tell"));
  facts = plain;
  facts.predicted_deviation_s = 2;
  EXPECT_THAT(cause_of(facts), HasSubstr("what the constants leave open, most of all sustained"));
  facts = plain;
  facts.phase = Phase::reshard;
  facts.handover_s = 9;
  EXPECT_THAT(cause_of(facts), HasSubstr("handover"));
  facts = plain;
  facts.reserved_part = 0.97;
  EXPECT_THAT(cause_of(facts), HasSubstr("reserved 97% of the device"));
  facts = plain;
  facts.communication_s = 5;
  EXPECT_THAT(cause_of(facts), HasSubstr("communication is 50%"));
  facts = plain;
  facts.measured_tokens = 700;
  facts.planned_tokens = 500;
  facts.at_measured_lengths_s = 12;
  EXPECT_THAT(cause_of(facts), HasSubstr("responses of 700 tokens where the plan has 500"));
}

/// Full recomputation that memory does not ask for: the first change takes it away, its seconds are
/// those of a plan made with its settings, and verl's key for it is named.
TEST(RunAdvice, TakesAwayWhatSlowsARunAndKeepsItsWord) {
  const Plan slow =
      planned(request("verl", {"actor.tp=1", "actor.pp=1", "actor.zero=3", "actor.recompute=full",
                               "actor.update_tokens=8192", "actor.tokens=16384", "rollout.tp=1"}));
  const MeasuredRun run = run_of(slow, [](Data&) {});
  const RunAdvice advice = advise(run.plan, Seconds{means_of(run).step.mean}, h100());
  ASSERT_FALSE(advice.changes.empty());
  EXPECT_NEAR(advice.step_s.value, slow.prediction.step_s.value, 1e-6);
  const AdvisedChange& best = advice.changes.front();
  EXPECT_THAT(best.what, HasSubstr("actor.recompute full -> "));
  EXPECT_GT(advice.step_s / best.step_s, 1.05);
  EXPECT_THAT(best.keys, testing::Contains(HasSubstr("enable_gradient_checkpointing: true ->")));
  EXPECT_TRUE(std::is_sorted(advice.changes.begin(), advice.changes.end(),
                             [](const auto& a, const auto& b) { return a.step_s < b.step_s; }));
  for (const AdvisedChange& change : advice.changes) {
    PlanRequest asked = request_of(slow, h100());
    Problems problems;
    asked.fixed = parse_settings(change.settings, problems);
    EXPECT_TRUE(problems.empty());
    EXPECT_NEAR(planned(asked).prediction.step_s / change.step_s, 1, 1e-9) << change.what;
    EXPECT_NEAR((advice.step_s - change.step_s).value, change.gain_s.value, 1e-12);
    EXPECT_GT(change.gain_deviation_s, 0);
  }
  EXPECT_THAT(to_text(advice, "p.json", "c.json"),
              HasSubstr("tessera plan --from p.json --calibration c.json --fix actor."));
  expect_schema("advice", to_json(advice, "p.json", "c.json"));
}

TEST(RunAdvice, TheBestPlanIsLeftAlone) {
  const Plan best = planned(request("tessera", {}));
  const RunAdvice advice = advise(best, Seconds{1}, h100());
  EXPECT_TRUE(advice.changes.empty());
  EXPECT_THAT(to_text(advice, "", ""), HasSubstr("no other setting is quicker"));
}

TEST(RunComparison, JsonIsAsTheSchemaSays) {
  const MeasuredRun run = run_of(own_plan(), [](Data& data) {
    data["perf/max_memory_allocated_gb"] = 30;
    data["perf/max_memory_reserved_gb"] = 33;
    data["response_length/mean"] = 1024;
    data["timing_s/gen"] *= 1.2;
  });
  const RunComparison result = compare_run(run, h100());
  ASSERT_EQ(result.memory.size(), 1U);
  EXPECT_EQ(result.memory[0].measured_gib, 30);
  EXPECT_GT(result.memory[0].predicted_gib, 1);
  expect_schema("comparison", to_json(result));
}

}  // namespace
}  // namespace tessera
