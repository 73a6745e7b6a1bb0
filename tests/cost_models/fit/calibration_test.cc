// Oracles: constants that made the samples; projection by exhaustive search.
#include "cost_models/calibration.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

#include "cost_models/collective.h"
#include "cost_models/compute.h"
#include "cost_models/documents/preset.h"
#include "cost_models/fit/calibration_fit.h"
#include "cost_models/fit/linear_fit.h"
#include "cost_models/rank_model.h"
#include "tests/cost_models/shipped_calibration.h"

namespace tessera {
namespace {

TEST(CalibrationFile, EveryShippedOneReadsAndWritesTheSameBytes) {
  const auto names = preset_names("calibrations", ".json");
  EXPECT_EQ(names.size(), 8);
  for (const std::string& name : names) {
    const Calibration calibration = shipped(name);
    Problems problems;
    const auto again = parse_calibration(to_json(calibration), name, problems);
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, calibration);
    EXPECT_EQ(to_json(*again), to_json(calibration));
    EXPECT_FALSE(calibration.note.empty()) << name;
    EXPECT_TRUE(constant_names(calibration, true).empty()) << name << " ships measured constants";
  }
}

TEST(CalibrationFile, IsChosenByTheDevicesName) {
  const auto name = [](const std::string& device) {
    return shipped_calibration({device, {}, {}, {}}).value_or("none");
  };
  EXPECT_EQ(name("H200-SXM-141GB"), "h200");
  EXPECT_EQ(name("H20-96GB"), "h20");
  EXPECT_EQ(name("H800-SXM-80GB"), "h800");
  EXPECT_EQ(name("cpu"), "cpu");
  EXPECT_EQ(name("MI300X"), "none");
}

TEST(CalibrationFile, RefusesEveryDefectWithItsPlace) {
  const std::string good = to_json(shipped("cpu"));
  const auto problems_of = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    Problems problems;
    EXPECT_FALSE(parse_calibration(text, "c.json", problems));
    return problems;
  };
  EXPECT_EQ(problems_of("\"tessera_calibration\": 1", "\"tessera_calibration\": 2").size(), 1);
  EXPECT_EQ(problems_of("\"fp32_factor\"", "\"fp23_factor\"").size(), 2);  // missing and unknown
  EXPECT_EQ(problems_of("\"value\": 6e+10", "\"value\": 0.0").size(), 1);
  EXPECT_EQ(problems_of("\"ratio\": []", "\"ratio\": [2.0]").size(), 1);
  EXPECT_EQ(problems_of("\"collective\": \"all_reduce\"", "\"collective\": \"allreduce\"").size(),
            1);
  EXPECT_EQ(problems_of("\"cores\": 2", "\"cores\": -1").size(), 1);
  EXPECT_GE(problems_of("\"cores\": 2,", "\"cores\": 2").size(), 1);
}

TEST(RatioTable, IsExactOnTheGridLogLinearBetweenAndClampedOutside) {
  RatioTable table;
  table.axes = {{1, 100}, {10, 1000}};
  table.ratio = {1, 2, 4, 8};
  const auto at = [&](double a, double b) { return table.at(std::array{a, b}); };
  EXPECT_DOUBLE_EQ(at(1, 10), 1);
  EXPECT_DOUBLE_EQ(at(100, 1000), 8);
  EXPECT_NEAR(at(10, 100), std::sqrt(std::sqrt(1.0 * 2 * 4 * 8)), 1e-12);
  EXPECT_DOUBLE_EQ(at(1e9, 1), 4);
  EXPECT_DOUBLE_EQ(RatioTable{}.at(std::array{5.0}), 1);
}

TEST(NonNegativeLeastSquares, IsTheBestFeasiblePoint) {
  std::mt19937_64 engine(3);
  std::normal_distribution<double> normal;
  for (int trial = 0; trial < 200; ++trial) {
    constexpr std::size_t kColumns = 3, kRows = 8;
    std::vector<double> rows(kColumns * kRows), target(kRows), covariance;
    for (double& value : rows) value = normal(engine);
    for (double& value : target) value = normal(engine);
    const auto solution = non_negative_least_squares(rows, kColumns, target, covariance);
    const auto gradient = [&](std::size_t column) {
      double sum = 0;
      for (std::size_t r = 0; r < kRows; ++r) {
        double residual = -target[r];
        for (std::size_t c = 0; c < kColumns; ++c) residual += rows[r * kColumns + c] * solution[c];
        sum += rows[r * kColumns + column] * residual;
      }
      return sum;
    };
    for (std::size_t c = 0; c < kColumns; ++c) {  // Karush-Kuhn-Tucker conditions
      EXPECT_GE(solution[c], 0);
      EXPECT_GE(gradient(c), -1e-9);
      EXPECT_NEAR(gradient(c) * solution[c], 0, 1e-9);
    }
  }
}

std::vector<CalibrationSample> matmul_samples(const Calibration& truth, DType dtype) {
  std::vector<CalibrationSample> samples;
  for (const double m : {1, 16, 64, 256, 1024}) {
    for (const double n : {64, 256, 1024}) {
      for (const double k : {64, 512}) {
        const Seconds seconds =
            matmul_seconds(m, n, k, dtype, truth) + Seconds{truth.dispatch_s.value};
        samples.push_back({SampleKind::matmul, {m, n, k}, seconds});
      }
    }
  }
  return samples;
}

/// Samples of every kind that a machine with these constants would have given: products are those
/// of `truth`, the other constants are named beside their samples.
std::vector<CalibrationSample> samples_of(const Calibration& truth) {
  auto samples = matmul_samples(truth, DType::fp32);
  samples.push_back({SampleKind::dispatch, {10}, Seconds{10 * 7e-6}});
  for (const double bytes : {1e5, 1e6, 1e7, 1e8}) {
    samples.push_back({SampleKind::stream, {bytes}, Seconds{7e-6 + 1e-6 + bytes / 3.3e9}});
    const double wire = wire_bytes(Collective::all_reduce, Traffic{bytes}, 4);
    samples.push_back({SampleKind::collective,
                       {bytes},
                       Seconds{2e-4 + wire / 1.5e9 + 3e-5 * std::sqrt(wire / 1e6)},
                       Collective::all_reduce,
                       4,
                       1});
  }
  Calibration slow = truth;  // attention at a third of the roofline, its backward pass at a sixth
  slow.attention_floor_s.value = 0;
  slow.prefill = {};
  for (const double pairs : {4., 256.}) {
    for (const double length : {8., 64.}) {
      const RankModel rank{{}, {.query_heads = 1, .kv_heads = 1, .head_dim = 16}, DType::fp32};
      const Seconds roofline =
          layer_attention_seconds(rank, {pairs * length, pairs, pairs * length * length}, slow);
      samples.push_back({SampleKind::attention, {pairs, length, 16}, 3 * roofline});
      samples.push_back({SampleKind::attention_backward, {pairs, length, 16}, 6 * roofline});
    }
  }
  // Two busy ranks got 0.8 of a core each: 2 cores / (2 + 2 x 0.25).
  samples.push_back({SampleKind::waiting, {2, 2, 0.8}, Seconds{1.0}});
  // Under load every product takes 1.3 of a burst; 2 s of kernels and 0.4 s of collectives, 2.2 s.
  for (const double m : {64., 256., 1024.}) {
    samples.push_back({SampleKind::sustained,
                       {m, 256, 512},
                       1.3 * matmul_seconds(m, 256, 512, DType::fp32, truth)});
  }
  samples.push_back({SampleKind::beside, {2.0, 0.4}, Seconds{2.2}});
  return samples;
}

TEST(Fit, RecoversTheConstantsThatMadeTheSamples) {
  Calibration truth = shipped("cpu");
  truth.matmul_flops.value = 3.7e10;
  truth.memory_bandwidth.value = 5.5e9;
  truth.matmul_floor_s.value = 4e-6;
  truth.dispatch_s.value = 7e-6;
  truth.stream_bandwidth.value = 3.3e9;
  const std::vector<CalibrationSample> samples = samples_of(truth);
  std::vector<FitReport> report;
  Problems problems;
  const FitContext context{DType::fp32, 2, 4, "test", "2026-01-01T00:00:00Z"};
  const Calibration fitted = fit_calibration(shipped("cpu"), samples, context, report, problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(fitted.note, "Measured by test. What that does not measure is of 'cpu'.");
  EXPECT_NEAR(fitted.matmul_flops.value, 3.7e10, 3.7e8);
  EXPECT_NEAR(fitted.memory_bandwidth.value, 5.5e9, 5.5e7);
  EXPECT_NEAR(fitted.matmul_floor_s.value, 4e-6, 4e-8);
  EXPECT_NEAR(fitted.dispatch_s.value, 7e-6, 1e-12);
  EXPECT_NEAR(fitted.stream_bandwidth.value, 3.3e9, 3.3e7);
  const ClusterSpec one{.gpus_per_node = 4, .nodes = 1};
  EXPECT_NEAR(collective_seconds(Collective::all_reduce, Traffic{3e5}, {4, 1}, one, fitted),
              2e-4 + 4.5e5 / 1.5e9 + 3e-5 * std::sqrt(0.45), 1e-7);
  EXPECT_TRUE(fitted.matmul_flops.measured);
  EXPECT_FALSE(fitted.inter_latency_s.measured);
  EXPECT_EQ(core_share(fitted, 4), 0.5);
  for (const double ratio : fitted.prefill.ratio) EXPECT_NEAR(ratio, 3, 0.03);
  EXPECT_EQ(fitted.prefill.ratio.size(), 4u);
  EXPECT_NEAR(fitted.attention_backward.value, 2, 0.01);
  EXPECT_NEAR(fitted.idle_share.value, 0.25, 1e-12);
  EXPECT_NEAR(fitted.sustained.value, 1.3, 0.02);
  EXPECT_TRUE(fitted.sustained.measured);
  EXPECT_NEAR(fitted.overlap_slowdown.value, 1.5, 1e-9);
  ASSERT_FALSE(report.empty());
  for (const FitReport& part : report) EXPECT_LT(part.p90_error, 0.02) << part.what;
}

TEST(Fit, StatesErrorsOfNoisySamplesThatCoverTheTruth) {
  const Calibration truth = shipped("h200");
  auto samples = matmul_samples(truth, DType::bf16);
  std::mt19937_64 engine(11);
  std::normal_distribution<double> noise(0, 0.05);
  for (auto& sample : samples) sample.seconds *= 1 + noise(engine);
  std::vector<FitReport> report;
  Problems problems;
  Calibration base = truth;
  base.matmul_flops.value *= 0.6;
  const Calibration fitted =
      fit_calibration(base, samples, {DType::bf16, 0, 1, "test", ""}, report, problems);
  const double off = std::abs(fitted.memory_bandwidth.value / truth.memory_bandwidth.value - 1);
  EXPECT_GT(fitted.memory_bandwidth.error, 0);
  EXPECT_LT(off, 3 * fitted.memory_bandwidth.error + 0.05);
  EXPECT_NEAR(report[0].median_error, 0.05, 0.05);
}

TEST(Fit, KeepsShippedConstantsWhereSamplesAreTooFew) {
  std::vector<FitReport> report;
  Problems problems;
  const std::vector<CalibrationSample> samples = {{SampleKind::matmul, {8, 8, 8}, Seconds{1e-4}}};
  const Calibration base = shipped("cpu");
  const Calibration fitted = fit_calibration(base, samples, {}, report, problems);
  EXPECT_EQ(fitted.matmul_flops, base.matmul_flops);
  EXPECT_EQ(problems.size(), 1);
}

}  // namespace
}  // namespace tessera
