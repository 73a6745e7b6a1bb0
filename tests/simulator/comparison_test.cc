#include "simulator/timeline/comparison.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "cost_models/documents/problem.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

Plan plan_with_prediction() {
  Plan plan;
  plan.prediction.step_s = Seconds{0.30};
  plan.prediction.phases_s = {{Phase::gen, Seconds{0.12}}, {Phase::update_actor, Seconds{0.15}}};
  plan.reshard.push_back({.bytes_received = Bytes{4096}});
  return plan;
}

std::vector<StepNumbers> run_of(double bytes) {
  return {{1, {{"timing_s/step", 9.0}, {"timing_s/gen", 8.0}, {"reshard/bytes", bytes}}},
          {2, {{"timing_s/step", 0.40}, {"timing_s/gen", 0.10}, {"reshard/bytes", bytes}}},
          {3, {{"timing_s/step", 0.20}, {"timing_s/gen", 0.14}, {"reshard/bytes", bytes}}}};
}

TEST(Comparison, MeansLeaveTheWarmUpOut) {
  const Comparison result = compare(plan_with_prediction(), run_of(4096), 1);
  ASSERT_EQ(result.phases.size(), 3u);
  EXPECT_EQ(result.steps, 2);
  EXPECT_EQ(result.phases[0].phase, "gen");
  EXPECT_NEAR(result.phases[0].measured_s, 0.12, 1e-12);
  EXPECT_NEAR(result.phases[0].relative_error(), 0, 1e-12);
  EXPECT_NEAR(result.phases[0].measured_deviation_s, 0.02, 1e-12);
  EXPECT_EQ(result.phases[2].phase, "step");
  EXPECT_NEAR(result.phases[2].measured_s, 0.30, 1e-12);
}

/// timing_s/step contains the saving: of verl's trainers (ray_trainer.py, v1/trainer_base.py) and
/// of Tessera's. Where every step saves, there is no other time.
TEST(Comparison, StepsThatSaveAreNoneOfThoseThatPlansPredict) {
  std::vector<StepNumbers> run = run_of(4096);
  run.push_back({4, {{"timing_s/step", 30.3}, {"timing_s/gen", 0.12}}});
  run.back().data["timing_s/save_checkpoint"] = 30;
  const auto step_of = [&] {
    return compare(plan_with_prediction(), run, 1).phases.back().measured_s;
  };
  EXPECT_NEAR(step_of(), 0.30, 1e-12);
  for (StepNumbers& step : run) step.data["timing_s/save_checkpoint"] = 0.01;
  EXPECT_NEAR(step_of(), (0.40 + 0.20 + 30.3) / 3, 1e-12);
}

TEST(Comparison, APhaseThatOnlyThePlanHasIsShownAsNotMeasured) {
  const Comparison result = compare(plan_with_prediction(), run_of(4096), 1);
  EXPECT_EQ(result.phases[1].phase, "update_actor");
  EXPECT_FALSE(result.phases[1].timed);
  EXPECT_FALSE(result.phases[1].has_error());
  EXPECT_TRUE(result.phases[0].timed);
  const std::string text = to_text(result);
  const auto row =
      text.substr(text.find("update_actor"), text.find("\nstep") - text.find("update"));
  EXPECT_NE(row.find("not measured"), std::string::npos) << row;
  EXPECT_EQ(row.find('%'), std::string::npos) << row;
  const std::string json = to_json(result);
  EXPECT_NE(json.find("\"measured_s\": null"), std::string::npos);
  EXPECT_NE(json.find("\"relative_error\": null"), std::string::npos);
}

/// A plan has no saving; 0 is no prediction that an error could be of.
TEST(Comparison, APhaseThatOnlyTheRunHasIsShownAsNotPredicted) {
  std::vector<StepNumbers> run = run_of(4096);
  run.back().data["timing_s/save_checkpoint"] = 0.05;
  const Comparison result = compare(plan_with_prediction(), run, 1);
  const PhaseComparison& saving = result.phases.at(2);
  ASSERT_EQ(saving.phase, "save_checkpoint");
  EXPECT_FALSE(saving.is_predicted());
  EXPECT_FALSE(saving.has_error());
  EXPECT_EQ(saving.relative_error(), 0);
  const std::string text = to_text(result);
  const std::string row =
      text.substr(text.find("save_checkpoint"), text.find("\nstep") - text.find("save_checkpoint"));
  EXPECT_NE(row.find("not predicted"), std::string::npos) << row;
  EXPECT_NE(row.find("50.00ms"), std::string::npos) << row;
  EXPECT_EQ(row.find("-100"), std::string::npos) << row;
  const std::string json = to_json(result);
  EXPECT_NE(json.find("\"save_checkpoint\", \"predicted_s\": null"), std::string::npos) << json;
  EXPECT_EQ(json.find("\"relative_error\": -1}"), std::string::npos) << json;
}

/// One checkpoint in many steps is no part of each: the time is of the step that had it, the share
/// of all.
TEST(Comparison, APhaseOfSomeStepsHasItsShareOfAll) {
  std::vector<StepNumbers> run;
  for (int step = 1; step <= 200; ++step) {
    run.push_back({step, {{"timing_s/step", 1.0}, {"timing_s/gen", 0.5}}});
  }
  run[99].data["timing_s/save_checkpoint"] = 0.019;
  const Comparison result = compare(plan_with_prediction(), run, 0);
  const PhaseComparison& saving = result.phases.at(2);
  ASSERT_EQ(saving.phase, "save_checkpoint");
  EXPECT_NEAR(saving.measured_s, 0.019, 1e-12);
  EXPECT_NEAR(saving.share, 0.019 / 200, 1e-9);
  EXPECT_EQ(saving.timed_steps, 1);
  EXPECT_NEAR(result.phases.at(0).share, 0.5, 1e-12);
  const std::string text = to_text(result);
  EXPECT_NE(text.find("0.01%        -  in 1 of 200 steps\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("of 200 steps"), text.rfind("of 200 steps"));
}

/// A resumed run writes the steps behind its checkpoint again.
TEST(Comparison, AStepThatStandsTwiceCountsOnce) {
  std::vector<StepNumbers> run = run_of(4096);
  run.push_back({2, {{"timing_s/step", 0.60}, {"timing_s/gen", 0.30}, {"reshard/bytes", 4096}}});
  run.push_back({3, {{"timing_s/step", 0.30}, {"timing_s/gen", 0.10}, {"reshard/bytes", 4096}}});
  const Comparison result = compare(plan_with_prediction(), run, 1);
  EXPECT_EQ(result.steps, 2);
  EXPECT_NEAR(result.phases[0].measured_s, 0.20, 1e-12);
}

TEST(Comparison, BytesAgreeExactlyOrNotAtAll) {
  EXPECT_TRUE(compare(plan_with_prediction(), run_of(4096)).bytes.at(0).agrees());
  EXPECT_FALSE(compare(plan_with_prediction(), run_of(4100)).bytes.at(0).agrees());
}

/// What a mean would hide: one step moves 100 bytes more, the next 100 fewer.
TEST(Comparison, EveryStepMovesThePlannedBytes) {
  std::vector<StepNumbers> run = run_of(4096);
  run[1].data["reshard/bytes"] = 4196;
  run[2].data["reshard/bytes"] = 3996;
  const BytesComparison bytes = compare(plan_with_prediction(), run, 1).bytes.at(0);
  EXPECT_EQ(bytes.measured, 4096);
  EXPECT_FALSE(bytes.agrees());
  EXPECT_EQ(verdict(bytes), "NOT EQUAL in 2 steps");
  run[1].data.erase("reshard/bytes");
  EXPECT_EQ(compare(plan_with_prediction(), run, 1).bytes.at(0).steps_apart, 2);
}

/// bf16 on the wire of fp32 weights from the third step on: half the bytes are foreseen there, and
/// the full bytes are wrong there; what a run says that it spared counts for nothing.
TEST(Comparison, ANarrowWireIsForeseenAndNotAddedBack) {
  Plan plan = plan_with_prediction();
  plan.roles.push_back({.role = Role::actor});
  plan.roles[0].dtypes.wire = DType::fp32;
  const WireOptions wire{.wire = DType::bf16, .wire_from_step = 3};
  std::vector<StepNumbers> run = run_of(4096);
  run[2].data["reshard/bytes"] = 2048;
  run[2].data["reshard/spared_bytes"] = 2048;
  EXPECT_FALSE(compare(plan, run, 1).bytes.at(0).agrees());
  const BytesComparison both = compare(plan, run, 1, wire).bytes.at(0);
  EXPECT_TRUE(both.agrees());
  EXPECT_EQ(both.predicted, 3072);
  EXPECT_EQ(both.measured, 3072);
  EXPECT_EQ(compare(plan, run, 2, wire).bytes.at(0).predicted, 2048);
  EXPECT_FALSE(compare(plan, run_of(4096), 1, wire).bytes.at(0).agrees());
}

TEST(Comparison, AnIncrementalSwitchMovesNoMoreThanThePlan) {
  const WireOptions changed{.incremental = true};
  const BytesComparison less = compare(plan_with_prediction(), run_of(7), 1, changed).bytes.at(0);
  EXPECT_TRUE(less.agrees());
  EXPECT_EQ(verdict(less), "within");
  const BytesComparison more = compare(plan_with_prediction(), run_of(4097), 1, changed).bytes[0];
  EXPECT_FALSE(more.agrees());
  EXPECT_EQ(verdict(more), "MORE in 2 steps");
}

TEST(WireOptions, AreThoseOfTheRunsOwnConfiguration) {
  const std::filesystem::path run = std::filesystem::temp_directory_path() /
                                    ("tessera-switch-options-" + std::to_string(getpid()));
  std::filesystem::create_directories(run);
  Problems problems;
  EXPECT_FALSE(read_wire_options(run, problems).wire);
  std::ofstream(run / "run.yaml") << "version: 1\ntrainer: {seed: 1}\n"
                                     "reshard: {wire: fp16, wire_from_step: 4, verify: true}\n";
  for (const std::filesystem::path& where : {run, run / "metrics.jsonl"}) {
    const WireOptions read = read_wire_options(where, problems);
    EXPECT_EQ(read.wire, DType::fp16);
    EXPECT_EQ(read.wire_from_step, 4);
    EXPECT_FALSE(read.incremental);
  }
  std::ofstream(run / "run.yaml") << "reshard: {incremental: true}\n";
  EXPECT_TRUE(read_wire_options(run, problems).incremental);
  EXPECT_TRUE(problems.empty());
  std::ofstream(run / "run.yaml") << "reshard: {wire: int4}\n";
  read_wire_options(run, problems);
  EXPECT_EQ(problems.size(), 1u);
  // A link that names itself is no file.
  std::filesystem::remove(run / "run.yaml");
  std::filesystem::create_symlink("run.yaml", run / "run.yaml");
  EXPECT_FALSE(read_wire_options(run, problems).wire);
  std::filesystem::remove_all(run);
}

}  // namespace
}  // namespace tessera
