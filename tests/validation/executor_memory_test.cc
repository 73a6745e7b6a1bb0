// What Tessera's own executor held on H200s beside what the planner says that it holds: the peak of
// torch's allocator and the memory that ranks share, over training steps of five models in eleven
// layouts. The reserve (context, libraries, communicators) lies outside of both.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "cost_models/documents/csv.h"
#include "cost_models/documents/problem.h"
#include "cost_models/spec/model_spec.h"
#include "planner/engines/engine.h"
#include "planner/plan/recompute.h"
#include "planner/sweep/price.h"

namespace tessera {
namespace {

const std::filesystem::path kData =
    std::filesystem::path(TESSERA_SOURCE_DIR) / "tests/validation/data/executor_memory.csv";

/// Bytes that the planner says, without the reserve.
double predicted(const SweepRow& row, int layers) {
  Problems problems;
  auto inputs = read_sweep_inputs({&row, 1}, ".", "row", "", problems);
  EXPECT_TRUE(inputs.has_value()) << to_string(problems.at(0));
  inputs->models.begin()->second.spec.layers = layers;
  const double reserve = inputs->clusters.begin()->second.calibration.reserve_bytes.value;
  const SweepResult result = SweepPricer(*inputs, {}).price(row);
  EXPECT_TRUE(result.peak_gib.has_value()) << result.why;
  return result.peak_gib.value_or(0) * (1LL << 30) - reserve;
}

// What cuBLAS takes from torch's allocator on Hopper (aten/src/ATen/cuda/CUDABlas.cpp: 32 MiB for
// its handle and as much for cuBLASLt), which the planner counts to the reserve.
constexpr double kProductWorkspace = 64.0 * (1 << 20);

/// Rows that were measured when the backward pass still kept the product of queries, keys and
/// values whole for its values: its bytes besides.
double projections(const SweepRow& row, const ModelSpec& model, int layers) {
  const double widths =
      2.0 * static_cast<double>((model.query_heads + model.kv_heads) * model.head_dim);
  const double under_way = *row.pp > 1 ? static_cast<double>(*row.pp) : 1;
  return widths * layers / *row.pp * under_way / *row.tp *
         static_cast<double>(*row.micro_batch * *row.prompt_tokens);
}

/// The engine's error bar is made of these steps: none is beyond three deviations.
void expect_within_error_bar(double held_by_counted, double outside, std::int64_t ranks) {
  const MemoryAccuracy& known = engine_named(kOwnEngine).memory;
  EXPECT_LE(std::abs(held_by_counted - 1 - known.bias), 3 * known.deviation);
  constexpr double kReserve = 2e9;  // of the shipped calibrations
  const double beyond = ranks > 1 ? static_cast<double>(known.outside.value) : 0;
  const auto deviation = static_cast<double>(known.outside_deviation.value);
  EXPECT_LE(std::abs(outside - kReserve - beyond), 3 * deviation) << ranks;
}

TEST(ExecutorMemory, OfATrainingStepIsWithinOnePercent) {
  Problems problems;
  const CsvTable table = read_csv(kData, problems).value();
  double worst = 0, sum = 0;
  for (const CsvRow& line : table.rows) {
    const auto text = [&](const char* name) { return line.cells[*table.column(name)]; };
    const auto number = [&](const char* name) { return std::atoi(text(name).c_str()); };
    SweepRow row{.model = text("model"), .cluster = "h200-8", .kind = SweepKind::train};
    row.engine = kOwnEngine;
    row.tp = number("tp"), row.pp = number("pp"), row.dp = number("dp");
    row.cp = row.vpp = 1;
    row.gpus = *row.tp * *row.pp * *row.dp;
    row.zero = number("zero");
    row.sequence_parallel = number("sequence_parallel") != 0;
    row.reshard_after_forward = number("kept_gathered") == 0;
    row.offload_optimizer = number("offload_optimizer") != 0;
    row.micro_batch = number("micro_batch_tokens") / number("sequence");
    row.global_batch = *row.micro_batch * number("micro_batches") * *row.dp;
    row.prompt_tokens = number("sequence");
    row.response_tokens = 0;
    for (const Recompute each : {Recompute::none, Recompute::selective, Recompute::full}) {
      if (name_of(each) == text("recompute")) row.recompute = each;
    }
    const double held = std::strtod(text("held_bytes").c_str(), nullptr);
    double counted = predicted(row, number("layers")) + kProductWorkspace;
    if (number("projections_kept") != 0 && row.recompute != Recompute::full) {
      const ModelSpec model = read_model_spec(row.model, problems).value();
      counted += projections(row, model, number("layers"));
    }
    const double error = counted / held - 1;
    expect_within_error_bar(held / counted, std::strtod(text("outside_bytes").c_str(), nullptr),
                            *row.gpus);
    std::printf("%-13s %2s layers tp%s pp%s dp%s zero%s %-9s %6s tokens: %7.2f GiB, %+.2f %%\n",
                text("model").c_str(), text("layers").c_str(), text("tp").c_str(),
                text("pp").c_str(), text("dp").c_str(), text("zero").c_str(),
                text("recompute").c_str(), text("micro_batch_tokens").c_str(), held / (1 << 30),
                100 * error);
    worst = std::max(worst, std::abs(error));
    sum += std::abs(error);
  }
  std::printf("mean %.2f %%, worst %.2f %%\n", 100 * sum / static_cast<double>(table.rows.size()),
              100 * worst);
  EXPECT_GE(table.rows.size(), 60U);
  EXPECT_LT(worst, 0.01);
}

}  // namespace
}  // namespace tessera
