#include "simulator/rules/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "cost_models/documents/problem.h"
#include "cost_models/fit/derived_calibration.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "planner/pricing/evaluate.h"
#include "planner/pricing/memory_limit.h"
#include "planner/request/request.h"
#include "simulator/rules/plan_metrics.h"

namespace tessera {
namespace {

using nlohmann::json;
using testing::HasSubstr;

RuleProfile shipped(const std::string& name) {
  Problems problems;
  const auto profile = read_rules(name, problems);
  EXPECT_TRUE(profile.has_value()) << (problems.empty() ? "" : to_string(problems[0]));
  return profile.value_or(RuleProfile{});
}

json file(const std::string& path) {
  std::ifstream stream(std::string(TESSERA_SOURCE_DIR) + "/" + path);
  return json::parse(stream);
}

Rule limit(std::string metric, RuleOperator relation, double value, RuleUnit unit) {
  Rule rule;
  rule.name = "r";
  rule.metric = std::move(metric);
  rule.relation = relation;
  rule.value = value;
  rule.unit = unit;
  return rule;
}

TEST(Rules, ShippedProfilesFitTheSchema) {
  const json text = file("docs/schemas/rules.schema.json");
  valijson::Schema schema;
  valijson::SchemaParser parser;
  parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(text), schema);
  valijson::Validator validator;
  for (const char* name : {"default", "published-practice"}) {
    json rules = file(std::string("configs/rules/") + name + ".json");
    EXPECT_TRUE(validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(rules), nullptr))
        << name;
    rules["rules"][0].erase("source");
    EXPECT_FALSE(
        validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(rules), nullptr));
  }
}

TEST(Rules, DefaultsReferToThePlanAndPracticeKeepsTheRefutedOff) {
  const RuleProfile defaults = shipped("default");
  for (const Rule& rule : defaults.rules) {
    EXPECT_TRUE(rule.enabled) << rule.name;
    EXPECT_EQ(rule.evidence, RuleEvidence::confirmed) << rule.name;
    // A number that a run's first steps and its swings move is no trend at once.
    if (rule.metric.starts_with("timing_s/") || rule.metric == "perf/throughput") {
      EXPECT_GE(rule.after_steps, 2) << rule.name;
      EXPECT_GE(rule.for_steps, 3) << rule.name;
    }
  }
  std::set<RuleEvidence> seen;
  const RuleProfile practice = shipped("published-practice");
  for (const Rule& rule : practice.rules) {
    seen.insert(rule.evidence);
    EXPECT_FALSE(rule.source.empty()) << rule.name;
    EXPECT_FALSE(rule.published.empty()) << rule.name;
    if (rule.evidence == RuleEvidence::refuted) {
      EXPECT_FALSE(rule.enabled) << rule.name;
      EXPECT_EQ(rule.action, RuleAction::none) << rule.name;
    }
  }
  EXPECT_EQ(seen.size(), 3U);
}

TEST(Rules, ScoresThatNeverDifferAreTold) {
  const RuleProfile defaults = shipped("default");
  const auto rule = std::ranges::find(defaults.rules, "scores_differ", &Rule::name);
  ASSERT_NE(rule, defaults.rules.end());
  EXPECT_EQ(rule->for_steps, 20);
  const auto outcome = [&](double equal) {
    return judge(*rule, {{"critic/score/equal_groups", equal}}, {}).outcome;
  };
  EXPECT_EQ(outcome(1), RuleOutcome::violated);
  EXPECT_EQ(outcome(0.98), RuleOutcome::holds);
}

TEST(Rules, ReaderNamesEveryDefect) {
  const char* text = R"({"tessera_rules": 1, "profile": "p", "note": "", "rules": [
    {"name": "a", "metric": "m", "scope": "phase", "operator": "=", "value": "x", "unit": "h",
     "source": "s", "evidence": "refuted", "published": "", "advice": "a", "action": "warn",
     "enabled": true, "colour": 1}]})";
  Problems problems;
  EXPECT_FALSE(parse_rules(text, "r.json", problems).has_value());
  std::string all;
  for (const Problem& problem : problems) all += to_string(problem) + "\n";
  for (const char* place : {"/rules/0/scope", "/rules/0/operator", "/rules/0/value",
                            "/rules/0/unit", "colour", "/rules/0/enabled"}) {
    EXPECT_THAT(all, HasSubstr(place));
  }
}

TEST(Rules, LimitsCountInTheUnitsThatTheyState) {
  const MetricValues values = {
      {"reshard/seconds", 0.04}, {"timing_s/step", 1.0}, {"perf/mfu/actor", 0.5}};
  const Expectation expectation{.predicted = {{"reshard/seconds", 0.03}}, .bound = {}};
  const auto outcome = [&](const Rule& rule) { return judge(rule, values, expectation).outcome; };
  EXPECT_EQ(outcome(limit("reshard/seconds", RuleOperator::less, 50, RuleUnit::ms)),
            RuleOutcome::holds);
  EXPECT_EQ(outcome(limit("reshard/seconds", RuleOperator::less, 39, RuleUnit::ms)),
            RuleOutcome::violated);
  EXPECT_EQ(outcome(limit("reshard/seconds", RuleOperator::at_most, 1.25, RuleUnit::predicted)),
            RuleOutcome::violated);
  EXPECT_EQ(outcome(limit("reshard/seconds", RuleOperator::at_most, 0.05, RuleUnit::step_share)),
            RuleOutcome::holds);
  EXPECT_EQ(outcome(limit("perf/mfu/actor", RuleOperator::greater, 80, RuleUnit::percent)),
            RuleOutcome::violated);
  EXPECT_EQ(outcome(limit("perf/mfu/actor", RuleOperator::greater, 0.5, RuleUnit::ratio)),
            RuleOutcome::violated);
  EXPECT_EQ(outcome(limit("perf/mfu/actor", RuleOperator::at_least, 0.5, RuleUnit::ratio)),
            RuleOutcome::holds);
  EXPECT_EQ(outcome(limit("absent", RuleOperator::less, 1, RuleUnit::ratio)), RuleOutcome::unknown);
}

TEST(Rules, ALimitBeyondTheHardwareIsUnreachableAndSaysSo) {
  RuleProfile profile{.profile = "p", .note = "", .rules = {}};
  profile.rules.push_back(limit("perf/mfu/actor", RuleOperator::greater, 90, RuleUnit::percent));
  profile.rules.push_back(limit("perf/mfu/actor", RuleOperator::greater, 60, RuleUnit::percent));
  const Expectation expectation{.predicted = {{"perf/mfu/actor", 0.5}},
                                .bound = {{"perf/mfu/actor", 0.8}}};
  const auto judged = judge(profile, expectation.predicted, expectation);
  EXPECT_EQ(judged[0].verdict.outcome, RuleOutcome::unreachable);
  EXPECT_EQ(judged[1].verdict.outcome, RuleOutcome::violated);
  EXPECT_THAT(describe(profile, judged), HasSubstr("predicted 0.5, bound 0.8"));
  EXPECT_THAT(to_json(profile, judged), HasSubstr("\"unreachable\""));
}

TEST(Rules, OfAnotherModelClassOrSwitchedOffAreShownButDoNotCount) {
  Rule rule = limit("perf/mfu/actor", RuleOperator::greater, 0.9, RuleUnit::ratio);
  Expectation expectation{.predicted = {}, .bound = {}, .parameters_in_billions = 70};
  rule.model_class = {.least = 4, .most = 10};
  EXPECT_EQ(judge(rule, {{"perf/mfu/actor", 0.5}}, expectation).outcome, RuleOutcome::off);
  expectation.parameters_in_billions = 7.6;
  EXPECT_EQ(judge(rule, {{"perf/mfu/actor", 0.5}}, expectation).outcome, RuleOutcome::violated);
  rule.enabled = false;
  const RuleVerdict verdict = judge(rule, {{"perf/mfu/actor", 0.5}}, expectation);
  EXPECT_EQ(verdict.outcome, RuleOutcome::off);
  EXPECT_TRUE(verdict.would_fail);
}

TEST(Rules, APlanMeetsItsOwnDefaults) {
  Problems problems;
  PlanRequest request;
  request.models["actor"] = {*read_model_spec("qwen2.5-7b", problems), "qwen2.5-7b", ""};
  request.cluster = *read_cluster_spec("h200-8", problems);
  request.workload = *read_workload("grpo-7b-1k", problems);
  request.calibration = *calibration_for_cluster(request.cluster, problems);
  const Plan plan = std::get<Plan>(*make_plan(request, problems));
  const Expectation expectation = expectation_of(plan, request.calibration);
  EXPECT_NEAR(expectation.parameters_in_billions, 7.6, 0.1);
  const RuleProfile defaults = shipped("default");
  for (const auto& [rule, verdict] : judge(defaults, expectation.predicted, expectation)) {
    if (rule->name == "memory_near_the_end") continue;  // a plan may fill all that it may fill
    EXPECT_NE(verdict.outcome, RuleOutcome::violated) << rule->name;
    EXPECT_NE(verdict.outcome, RuleOutcome::unreachable) << rule->name;
  }
  // No prediction passes its own bound.
  EXPECT_LE(expectation.predicted.at("perf/mfu/actor"), expectation.bound.at("perf/mfu/actor"));
  EXPECT_LE(expectation.predicted.at("perf/throughput"), expectation.bound.at("perf/throughput"));
  EXPECT_GE(expectation.predicted.at("timing_s/step"), expectation.bound.at("timing_s/step"));
  const bool moves = plan.reshard.at(0).bytes_received > 0;
  ASSERT_EQ(expectation.predicted.contains("reshard/seconds"), moves);
  if (!moves) return;
  EXPECT_GE(expectation.predicted.at("reshard/seconds"), expectation.bound.at("reshard/seconds"));
}

Plan small_plan() {
  Problems problems;
  Plan plan;
  plan.cluster = *read_cluster_spec("h200-8", problems);
  plan.prediction = {.step_s = Seconds{10}, .phases_s = {{Phase::reshard, {}}}};
  return plan;
}

/// Barriers are all that a reshard without bytes takes: multiples of nothing do not limit them.
/// What it moves beyond the plan's nothing is still found.
TEST(Rules, ASwitchThatMovesNothingIsNotTooSlow) {
  Problems problems;
  Plan plan = small_plan();
  const Calibration calibration = *calibration_for_cluster(plan.cluster, problems);
  plan.reshard.push_back({});
  const RuleProfile defaults = shipped("default");
  const auto outcomes = [&](double bytes) {
    std::map<std::string, RuleOutcome> all;
    const MetricValues run = {{"reshard/seconds", 0.004}, {"reshard/bytes", bytes}};
    for (const auto& [rule, verdict] : judge(defaults, run, expectation_of(plan, calibration))) {
      all[rule->name] = verdict.outcome;
    }
    return all;
  };
  EXPECT_EQ(outcomes(0).at("reshard_slower_than_planned"), RuleOutcome::unknown);
  EXPECT_EQ(outcomes(0).at("reshard_moves_the_planned_bytes"), RuleOutcome::holds);
  EXPECT_EQ(outcomes(8).at("reshard_moves_the_planned_bytes"), RuleOutcome::violated);
  plan.reshard[0].bytes_received = Bytes{1000};
  plan.prediction.phases_s[Phase::reshard] = Seconds{0.001};
  EXPECT_EQ(outcomes(1000).at("reshard_slower_than_planned"), RuleOutcome::violated);
}

/// The fullest plan that fits fires it; one with a tenth to spare does not.
TEST(Rules, MemoryNearTheEndIsThatOfWhatPlansMayFill) {
  Problems problems;
  Plan plan = small_plan();
  const Calibration calibration = *calibration_for_cluster(plan.cluster, problems);
  const RuleProfile defaults = shipped("default");
  const auto outcome = [&](double share) {
    plan.prediction.peak_bytes =
        Bytes{static_cast<std::int64_t>((share * usable_memory(plan, calibration)).value)};
    const Expectation expectation = expectation_of(plan, calibration);
    for (const auto& [rule, verdict] : judge(defaults, expectation.predicted, expectation)) {
      if (rule->name == "memory_near_the_end") return verdict.outcome;
    }
    return RuleOutcome::off;
  };
  EXPECT_EQ(outcome(0.999), RuleOutcome::violated);
  EXPECT_EQ(outcome(0.9), RuleOutcome::holds);
}

/// No times of processors are judged, whose ranks share them: neither those of shipped constants
/// nor measured ones, nor a GPU's where its plan runs on processors. A plan for another device that
/// was priced with constants of the machine is judged by its times; only what is computed of
/// derived constants is not. Bytes are judged always.
TEST(Rules, TimesOfMeasuredConstantsAreJudgedBesideRoughOnes) {
  Problems problems;
  Plan plan = small_plan();
  plan.cluster = *read_cluster_spec("local-cpu", problems);
  plan.reshard.push_back({.bytes_received = Bytes{1000}, .lower_bound_bytes = Bytes{1000}});
  Calibration constants = *calibration_for_cluster(plan.cluster, problems);
  const auto left = [&](RoughTimes rough, bool on_processors) {
    const RunExpectation held = expectation_of_run(plan, constants, on_processors);
    EXPECT_EQ(held.rough, rough);
    EXPECT_TRUE(held.expectation.predicted.contains("reshard/bytes"));
    EXPECT_TRUE(held.expectation.bound.contains("reshard/bytes"));
    const bool times = held.expectation.predicted.contains("timing_s/step");
    EXPECT_EQ(times, why_times_are_not_judged(rough, plan).empty());
    EXPECT_EQ(times, !leaves_out(rough, "timing_s/step"));
    EXPECT_FALSE(leaves_out(rough, "reshard/bytes"));
    return std::pair(times, held.expectation.bound.contains("reshard/seconds"));
  };
  EXPECT_EQ(left(RoughTimes::all, true), std::pair(false, false));
  EXPECT_EQ(why_times_are_not_judged(RoughTimes::all, plan),
            "ranks share the processors with one another and with whatever else runs there");
  plan.prediction.measured_constants = {"matmul_flop_per_s"};
  EXPECT_EQ(left(RoughTimes::shared, true), std::pair(false, false));
  plan.cluster.device.name = "another";
  constants.name += ", derived from another device";
  EXPECT_EQ(left(RoughTimes::bounds, false), std::pair(true, false));
  plan.cluster = *read_cluster_spec("h200-8", problems);
  constants = *calibration_for_cluster(plan.cluster, problems);
  EXPECT_EQ(left(RoughTimes::none, false), std::pair(true, true));
  EXPECT_EQ(left(RoughTimes::other_device, true), std::pair(false, false));
  EXPECT_EQ(why_times_are_not_judged(RoughTimes::other_device, plan),
            "the plan is for H200-SXM-141GB, and its ranks run on processors");
}

/// Of other software nobody knows where it ran: its times are judged.
TEST(Rules, RanksOnProcessorsAreToldByTheirNumbers) {
  MetricValues step{{"timing_s/step", 1.0}};
  EXPECT_FALSE(ranks_on_processors({}));
  EXPECT_FALSE(ranks_on_processors(step));
  step["plan/predicted_step_s"] = 1;
  EXPECT_TRUE(ranks_on_processors(step));
  step["perf/max_memory_allocated_gb"] = 1;
  EXPECT_FALSE(ranks_on_processors(step));
}

/// Utilisation that was published is of GPUs; a user's own limits of other numbers stay.
TEST(Rules, PublishedUtilisationDoesNotJudgeProcessors) {
  const RuleProfile practice = shipped("published-practice");
  const auto rule = std::ranges::find(practice.rules, "mfu_as_published", &Rule::name);
  ASSERT_NE(rule, practice.rules.end());
  const MetricValues values{{"perf/mfu/actor", 0.103}};
  Expectation expectation{.parameters_in_billions = 7};
  EXPECT_EQ(judge(*rule, values, expectation).outcome, RuleOutcome::violated);
  expectation.on_processors = true;
  EXPECT_EQ(judge(*rule, values, expectation).outcome, RuleOutcome::unknown);
  Rule own = *rule;
  own.metric = "perf/throughput";
  EXPECT_EQ(judge(own, {{"perf/throughput", 0.1}}, expectation).outcome, RuleOutcome::violated);
}

}  // namespace
}  // namespace tessera
