// Training steps of this executor against predictions from the calibration of the same day.
//
// Both lie in benchmarks/results: the steps as `tessera bench train` wrote them, the calibration as
// `tessera calibrate` did. Aim: 10 % per row. Constants come from the calibration alone.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/fit/learned_constants.h"
#include "planner/sweep/price.h"
#include "planner/sweep/search/row_search.h"

namespace tessera {
namespace {

const std::filesystem::path kResults =
    std::filesystem::path(TESSERA_SOURCE_DIR) / "benchmarks/results";

/// The row that `bench train` prices for one of its figures.
SweepRow row_of(const nlohmann::json& figure, int ranks) {
  const nlohmann::json& layout = figure.at("layout");
  SweepRow row{
      .model = figure.value("model", "qwen2-7b"), .cluster = "h200-8", .kind = SweepKind::train};
  row.engine = "tessera";
  row.gpus = ranks;
  row.tp = layout.at("tp").get<int>();
  row.pp = layout.at("pp").get<int>();
  row.dp = layout.at("dp_replicate").get<int>() * layout.at("dp_shard").get<int>();
  row.cp = 1;
  row.vpp = layout.at("vpp").get<int>();
  row.zero = layout.at("zero").get<int>();
  const auto sequence = figure.at("sequence").get<std::int64_t>();
  row.micro_batch = figure.at("micro_batch_tokens").get<std::int64_t>() / sequence;
  row.global_batch = *row.micro_batch * figure.at("micro_batches").get<std::int64_t>() * *row.dp;
  row.prompt_tokens = static_cast<double>(sequence);
  row.response_tokens = 0;
  const std::string recompute = figure.value("recompute", "none");
  row.recompute = recompute == "full"        ? Recompute::full
                  : recompute == "selective" ? Recompute::selective
                                             : Recompute::none;
  row.offload_optimizer = figure.value("offload", false);
  row.reshard_after_forward = figure.value("reshard_after_forward", true);
  row.sequence_parallel = layout.at("sequence_parallel").get<bool>();
  return row;
}

TEST(OwnRuns, TrainingStepsOfFourH200) {
  std::ifstream in(kResults / "h200x4-train.json");
  const auto document = nlohmann::json::parse(in);
  const std::string calibration = (kResults / "h200x4-calibration.json").string();
  std::printf("Training steps on 4 x H200, that day's calibration\n");
  double sum = 0, worst = 0, memory_sum = 0;
  int rows = 0;
  for (const auto& run : document.at("runs")) {
    if (!run.contains("tessera")) continue;
    for (const auto& figure : run.at("tessera")) {
      const SweepRow row = row_of(figure, 4);
      Problems problems;
      const auto inputs = read_sweep_inputs({&row, 1}, ".", "own_runs", calibration, problems);
      ASSERT_TRUE(inputs.has_value()) << (problems.empty() ? "" : to_string(problems[0]));
      const SweepResult result = SweepPricer(*inputs, search_row).price(row);
      ASSERT_TRUE(result.update_s.has_value()) << result.why;
      const auto measured = figure.at("step_s").get<double>();
      const double error = result.update_s->value / measured - 1;
      const double gib = (figure.at("memory").at("allocated").get<double>() +
                          figure.at("memory").value("shared", 0.0)) /
                         (1LL << 30);
      const double memory = *result.peak_gib / gib - 1;
      std::printf(
          "  %-11s tp%lld pp%lld dp%lld zero%lld%s %5lld tokens x %lld  measured %.3f s  predicted "
          "%.3f s "
          "(%+.1f %%)   memory %.1f GiB, predicted %.1f (%+.1f %%)\n",
          row.model.c_str(), static_cast<long long>(*row.tp), static_cast<long long>(*row.pp),
          static_cast<long long>(*row.dp), static_cast<long long>(*row.zero),
          row.offload_optimizer ? " host optimizer" : "",
          figure.at("micro_batch_tokens").get<long long>(),
          figure.at("micro_batches").get<long long>(), measured, result.update_s->value,
          error * 100, gib, *result.peak_gib, memory * 100);
      sum += std::abs(error);
      memory_sum += std::abs(memory);
      worst = std::max(worst, std::abs(error));
      ++rows;
    }
  }
  std::printf("  %d rows, mean error %.1f %%, worst %.1f %%; memory %.1f %%\n\n", rows,
              100 * sum / rows, 100 * worst, 100 * memory_sum / rows);
  EXPECT_GE(rows, 7);
  EXPECT_LE(worst, 0.10);
  EXPECT_LE(memory_sum / rows, 0.03);
}

/// Figures of one layout and size, which several calls measured.
using Figures = std::vector<std::pair<SweepRow, double>>;

std::map<std::string, Figures> figures_by_layout() {
  std::ifstream in(kResults / "h200x4-train.json");
  const auto document = nlohmann::json::parse(in);
  std::map<std::string, Figures> figures;
  for (const auto& run : document.at("runs")) {
    if (!run.contains("tessera")) continue;
    for (const auto& figure : run.at("tessera")) {
      const SweepRow row = row_of(figure, 4);
      if (row.offload_optimizer) continue;  // a processor's time, of which no constant speaks
      const std::string name = "tp" + std::to_string(*row.tp) + " pp" + std::to_string(*row.pp) +
                               " dp" + std::to_string(*row.dp) + " zero" +
                               std::to_string(*row.zero) + ", " +
                               std::to_string(figure.at("micro_batch_tokens").get<long long>()) +
                               " x " + std::to_string(figure.at("micro_batches").get<long long>());
      figures[name].emplace_back(row, figure.at("step_s").get<double>());
    }
  }
  return figures;
}

double mean_of(const Figures& figures) {
  double sum = 0;
  for (const auto& each : figures) sum += each.second;
  return sum / static_cast<double>(figures.size());
}

struct HeldOut {
  double before = 0, after = 0;  // mean errors
  int moved = 0;                 // constants, over all layouts
};

/// Every layout in turn is predicted from what the others teach, beginning with those constants.
HeldOut held_out(const std::string& begin) {
  const auto figures = figures_by_layout();
  std::vector<SweepRow> rows;
  for (const auto& [name, of] : figures) rows.push_back(of.front().first);
  Problems problems;
  auto inputs = read_sweep_inputs(rows, ".", "own_runs", begin, problems);
  EXPECT_TRUE(inputs.has_value());
  const Calibration base = inputs->clusters.begin()->second.calibration;
  const auto seconds = [&](const Calibration& calibration, const std::vector<SweepRow>& of) {
    inputs->clusters.begin()->second.calibration = calibration;
    SweepPricer pricer(*inputs, search_row);
    std::vector<double> values;
    for (const SweepRow& row : of) values.push_back(pricer.price(row).update_s.value().value);
    return values;
  };
  HeldOut result;
  std::printf("Training steps of layouts held out, beginning with %s\n", begin.c_str());
  for (const auto& [held, held_figures] : figures) {
    std::vector<SweepRow> others;
    std::vector<MeasuredQuantity> measured;
    for (const auto& [name, of] : figures) {
      if (name == held) continue;
      others.push_back(of.front().first);
      measured.push_back({name, "update_actor", mean_of(of), 0.01});
    }
    const LearnedConstants learned = learn_constants(
        base, measured,
        [&](const Calibration& calibration) { return seconds(calibration, others); }, "test");
    std::string moved;
    for (const LearnedConstant& each : learned.constants) {
      if (each.fate != ConstantFate::moved) continue;
      moved += " " + each.name + " x" + std::to_string(each.after / each.before).substr(0, 5);
      ++result.moved;
    }
    const std::vector<SweepRow> row = {held_figures.front().first};
    const double was = seconds(base, row)[0] / mean_of(held_figures) - 1;
    const double is = seconds(learned.calibration, row)[0] / mean_of(held_figures) - 1;
    std::printf("  %-36s %.3f s, before %+.1f %%, learned from the others %+.1f %% (%s )\n",
                held.c_str(), mean_of(held_figures), was * 100, is * 100, moved.c_str());
    result.before += std::abs(was) / static_cast<double>(figures.size());
    result.after += std::abs(is) / static_cast<double>(figures.size());
  }
  std::printf("  %zu held out: mean error %.1f %% before, %.1f %% after\n\n", figures.size(),
              result.before * 100, result.after * 100);
  return result;
}

/// The shipped constants of the machine are as near as the model is (3 %): nothing moves. With
/// those of an A100 in their place the steps of the others bring the machine back.
TEST(OwnRuns, WhatOtherLayoutsTeachPredictsALayout) {
  const HeldOut own = held_out("h200");
  EXPECT_EQ(own.moved, 0);
  EXPECT_LT(own.after, 0.03);
  const HeldOut other = held_out("a100");
  EXPECT_GT(other.before, 0.5);
  EXPECT_LT(other.after, 0.1);
}

}  // namespace
}  // namespace tessera
