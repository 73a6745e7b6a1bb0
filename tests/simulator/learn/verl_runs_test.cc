// verl's own metrics of six configurations on one GPU (benchmarks/results/h200-verl-host.json)
// beside what is said of their scripts: by the shipped constants, and by those that two of the runs
// teach. And seven plans that ran as exported (h200x2-verl-pairs.json, h200x2-verl-plans.json).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cost_models/documents/problem.h"
#include "planner/interop/import.h"
#include "planner/interop/price.h"
#include "planner/interop/read_config.h"
#include "planner/plan/plan.h"
#include "simulator/learn/learned_runs.h"
#include "simulator/learn/measured_run.h"
#include "simulator/learn/run_comparison.h"

namespace tessera {
namespace {

using Json = nlohmann::json;

const std::string kRoot = TESSERA_SOURCE_DIR "/benchmarks/";

// The script with a run's overrides in the places of the keys that they replace.
std::string script_of(const Json& run) {
  std::ifstream file(kRoot + "peers/" + run["script"].get<std::string>());
  std::string text, overrides;
  std::vector<std::string> keys;
  for (const Json& each : run["overrides"]) {
    overrides += each.get<std::string>() + " ";
    const std::string key = each.get<std::string>();
    keys.push_back(key.substr(key.starts_with('+') ? 1 : 0, key.find('=')));
  }
  for (std::string line; std::getline(file, line);) {
    const bool replaced = std::any_of(keys.begin(), keys.end(), [&](const std::string& key) {
      return line.starts_with("    " + key.substr(0, key.find('=')) + "=");
    });
    if (!replaced) text += line + "\n";
  }
  const std::size_t rest = text.find("\"$@\"");
  return text.replace(rest, 4, overrides);
}

Calibration shipped() {
  Problems problems;
  return find_calibration("h200", problems).value();
}

// Of a script's text, on one GPU.
Plan plan_of(const std::string& text, const std::string& name, std::optional<double> prompt = {}) {
  Problems problems;
  ClusterSpec cluster = *read_cluster_spec("h200-8", problems);
  cluster.gpus_per_node = 1;
  const auto script = read_config_values(text, name, problems);
  auto imported = import_config(*script, {.cluster = cluster, .prompt_mean = prompt}, problems);
  EXPECT_TRUE(imported) << Error(ExitCode::bad_input, problems).what();
  if (!imported) return {};
  price(imported->plan, shipped(), imported->memory_share);
  return std::move(imported->plan);
}

std::vector<StepNumbers> steps_of(const Json& run) {
  std::vector<StepNumbers> steps;
  for (const Json& step : run["steps"]) {
    steps.push_back({.step = step["step"], .data = step["data"]});
  }
  return steps;
}

std::vector<MeasuredRun> runs() {
  std::ifstream file(kRoot + "results/h200-verl-host.json");
  const Json results = Json::parse(file);
  std::vector<MeasuredRun> runs;
  for (const Json& run : results["runs"]) {
    Problems problems;
    const Plan plan = plan_of(script_of(run), run["script"]);
    auto measured = measured_run(run["name"], plan, steps_of(run), std::nullopt, problems);
    EXPECT_TRUE(measured) << run["name"];
    if (measured) runs.push_back(*std::move(measured));
  }
  EXPECT_EQ(runs.size(), 6U);
  return runs;
}

// Exported plans that ran for so many steps at least, with prompts as long as they were in the
// mean.
std::vector<MeasuredRun> runs_of_plans(const std::vector<std::string>& files, std::size_t least) {
  std::vector<MeasuredRun> runs;
  for (const std::string& name : files) {
    std::ifstream file(kRoot + "results/" + name);
    const Json results = Json::parse(file);
    for (const Json& run : results["runs"]) {
      const std::vector<StepNumbers> steps = steps_of(run);
      if (steps.size() < least) continue;
      std::string script = "python3 -m verl.trainer.main_ppo";
      for (const Json& each : run["overrides"]) script += " \\\n    " + each.get<std::string>();
      Problems problems;
      auto measured = measured_run(run["name"], plan_of(script, run["name"], 500), steps,
                                   std::nullopt, problems);
      EXPECT_TRUE(measured) << run["name"];
      if (measured) runs.push_back(*std::move(measured));
    }
  }
  return runs;
}

std::vector<MeasuredRun> exported_runs() {
  auto runs = runs_of_plans({"h200x2-verl-pairs.json", "h200x2-verl-plans.json"}, 3);
  EXPECT_EQ(runs.size(), 7U);
  return runs;
}

double error_of(const FittedPhase& phase, double said) { return said / phase.measured_s - 1; }

// Before verl's software had a price the steps were said 32 to 75 % too short, and before its
// modules' kernels had one, up to 18 %.
TEST(VerlRuns, AreSaidWithTheTimeOfTheSoftware) {
  const LearnedRuns read = learn_from_runs(runs(), shipped());
  for (const FittedRun& run : read.runs) {
    for (const FittedPhase& phase : run.phases) {
      // Half of a poll of two seconds, and hosts that serve at different speeds.
      const bool generates = phase.what == "gen" || phase.what == "step";
      const double most = generates ? 0.35 : phase.what == "reshard" ? 0.5 : 0.35;
      EXPECT_LT(std::abs(error_of(phase, phase.before_s)), most) << run.name << " " << phase.what;
    }
    EXPECT_LT(std::abs(error_of(run.phases.back(), run.phases.back().before_s)), 0.1) << run.name;
  }
}

// Micro-batches of eight sequences: nine of their mean length have no more than eight of the
// longest.
TEST(VerlRuns, CutMicroBatchesByTheNumberOfSequences) {
  const FittedRun run = learn_from_runs({runs().front()}, shipped()).runs.front();
  ASSERT_EQ(run.name, "micro_batches");
  int phases = 0;
  for (const FittedPhase& phase : run.phases) {
    if (phase.what != "old_log_prob" && phase.what != "update_actor") continue;
    EXPECT_LT(std::abs(error_of(phase, phase.before_s)), 0.08) << phase.what;
    ++phases;
  }
  EXPECT_EQ(phases, 2);
}

TEST(VerlRuns, AreForetoldByTwoOthers) {
  const std::vector<MeasuredRun> all = runs();
  const LearnedRuns two = learn_from_runs({all[0], all[1]}, shipped());
  double sum = 0;
  for (std::size_t i = 2; i < all.size(); ++i) {
    const LearnedRuns one = learn_from_runs({all[i]}, two.learned.calibration);
    const FittedPhase& step = one.runs[0].phases.back();
    ASSERT_EQ(step.what, "step");
    const double error = std::abs(error_of(step, step.before_s));
    EXPECT_LT(error, 0.14) << all[i].name;
    sum += error;
  }
  EXPECT_LT(sum / 4, 0.1);
}

// Where 512 sequences generate, vLLM's front end takes three times as long as its GPU (until it had
// a price that generation was said to take a third), and whether they run at once does not matter
// (until waiting requests counted, half). Three models' updates and scoring were said 10 to 41 %
// too short with fused kernels.
TEST(ExportedRuns, AreSaidWithTheirKernelsAndTheFrontEndOfTheServer) {
  double sum = 0;
  const LearnedRuns read = learn_from_runs(exported_runs(), shipped());
  for (const FittedRun& run : read.runs) {
    for (const FittedPhase& phase : run.phases) {
      const double error = error_of(phase, phase.before_s);
      const double most = phase.what == "step"                   ? 0.1
                          : phase.what == "gen"                  ? 0.2
                          : phase.what.starts_with("update_a")   ? 0.12
                          : phase.what.starts_with("update_cri") ? 0.12
                                                                 : 0.7;
      EXPECT_LT(std::abs(error), most) << run.name << " " << phase.what << " " << error;
      if (phase.what == "step") sum += std::abs(error);
    }
  }
  EXPECT_LT(sum / static_cast<double>(read.runs.size()), 0.06);
}

// They ran after the constants had been mended by all others. Gradients that a mini-batch of one
// micro-batch does not have yet beside its logits were counted then (10 % of the first one's
// memory).
TEST(HeldOutPlans, AreSaidBeforeTheyRan) {
  const std::vector<MeasuredRun> ran = runs_of_plans({"h200x2-verl-held-out.json"}, 2);
  ASSERT_EQ(ran.size(), 3U);
  for (const FittedRun& run : learn_from_runs(ran, shipped()).runs) {
    for (const FittedPhase& phase : run.phases) {
      const bool short_one = phase.what == "reshard" || phase.what == "adv";  // half a second
      const double most = phase.what == "step" ? 0.1 : short_one ? 0.5 : 0.16;
      const double error = error_of(phase, phase.before_s);
      EXPECT_LT(std::abs(error), most) << run.name << " " << phase.what << " " << error;
    }
  }
  for (const MeasuredRun& run : ran) {
    const RunComparison compared = compare_run(run, shipped());
    ASSERT_FALSE(compared.memory.empty()) << run.name;
    const MemoryComparison& memory = compared.memory[0];
    EXPECT_GT(memory.predicted_gib, 0.99 * memory.measured_gib) << run.name;
    // Memory is said of micro-batches as full as the limit lets them be, 20 of the longest
    // sequences of the third; verl cut its 128 into seven of 18 and 19.
    const double most = run.name == "grpo_1.5b_tp2_untold" ? 1.12 : 1.06;
    EXPECT_LT(memory.predicted_gib, most * memory.measured_gib) << run.name;
  }
}

// A server that tells no log-probs hands tokens on three times as fast, and is imported so. What
// was measured on this host is 10 % below what others took with log-probs, too.
TEST(UntoldLogProbs, MakeGenerationThreeTimesAsQuick) {
  const std::vector<MeasuredRun> ran = runs_of_plans({"h200-verl-log-probs.json"}, 2);
  ASSERT_EQ(ran.size(), 3U);
  EXPECT_EQ(ran[0].plan.find(Role::rollout)->log_probs, ToldLogProbs::as_engine);
  EXPECT_EQ(ran[1].plan.find(Role::rollout)->log_probs, ToldLogProbs::untold);
  std::vector<double> generation;
  for (const FittedRun& run : learn_from_runs(ran, shipped()).runs) {
    for (const FittedPhase& phase : run.phases) {
      const double error = error_of(phase, phase.before_s);
      if (phase.what == "gen") generation.push_back(phase.before_s);
      const double most = phase.what == "gen" ? 0.35 : phase.what == "step" ? 0.2 : 10;
      EXPECT_LT(std::abs(error), most) << run.name << " " << phase.what << " " << error;
    }
  }
  ASSERT_EQ(generation.size(), 3U);
  EXPECT_LT(generation[1], 0.45 * generation[0]);
}

// The trainer's process holds all roles on its GPUs.
TEST(VerlRuns, HoldNoMoreThanIsSaid) {
  for (const MeasuredRun& run : runs()) {
    const RunComparison compared = compare_run(run, shipped());
    ASSERT_FALSE(compared.memory.empty()) << run.name;
    const MemoryComparison& memory = compared.memory[0];
    EXPECT_GT(memory.predicted_gib, 0.99 * memory.measured_gib) << run.name;
    EXPECT_LT(memory.predicted_gib, 1.15 * memory.measured_gib) << run.name;
  }
}

TEST(ExportedRuns, HoldWhatTheirPlansSay) {
  for (const MeasuredRun& run : exported_runs()) {
    const RunComparison compared = compare_run(run, shipped());
    ASSERT_FALSE(compared.memory.empty()) << run.name;
    const MemoryComparison& memory = compared.memory[0];
    EXPECT_NEAR(memory.predicted_gib / memory.measured_gib, 1, 0.06) << run.name;
  }
}

}  // namespace
}  // namespace tessera
