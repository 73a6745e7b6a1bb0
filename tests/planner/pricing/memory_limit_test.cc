// Oracles: draws of the quantities that the error bar is made of, and the integral of a normal
// density by rectangles.
#include "planner/pricing/memory_limit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

#include "planner/engines/engine.h"
#include "planner/request/request.h"

namespace tessera {
namespace {

constexpr double kGiB = 1LL << 30;

Bytes gib(double amount) { return Bytes{static_cast<std::int64_t>(amount * kGiB)}; }

const MemoryAccuracy kAccuracy{.bias = 0.03,
                               .deviation = 0.025,
                               .outside = gib(3.4),
                               .outside_deviation = gib(0.6),
                               .measured = 15,
                               .source = "a test"};

ClusterSpec cluster_with(Bytes memory) {
  ClusterSpec cluster;
  cluster.nodes = 1;
  cluster.gpus_per_node = 8;
  cluster.device.memory = memory;
  return cluster;
}

Calibration constants() {
  Calibration calibration;
  calibration.reserve_bytes = {2e9, 0.3, false, "a test"};
  calibration.fragmentation = {0.025, 0.5, false, "a test"};
  return calibration;
}

MemoryError error_of(const MemoryAccuracy& accuracy = kAccuracy) {
  return memory_error(cluster_with(gib(140)), constants(), accuracy);
}

// The probability that a standard normal number is below z: rectangles of the density.
double below_by_integral(double z) {
  constexpr int kPieces = 2'000'000;
  const double low = -12, width = (z - low) / kPieces;
  double sum = 0;
  for (int i = 0; i < kPieces; ++i) {
    const double x = low + (i + 0.5) * width;
    sum += std::exp(-x * x / 2);
  }
  return sum * width / std::sqrt(2 * std::numbers::pi);
}

TEST(MemoryLimit, TheProbabilityIsTheIntegralOfTheDensityOfTheSum) {
  const MemoryError error = error_of();
  for (const double roles : {100.0, 115.0, 121.0, 127.0, 132.0}) {
    const double mean = 1.03 * roles + 2e9 / kGiB + 3.4 + 0.025 * 140;
    const double variance = std::pow(0.025 * roles, 2) + std::pow(0.3 * 2e9 / kGiB, 2) +
                            std::pow(0.6, 2) + std::pow(0.5 * 0.025 * 140, 2);
    EXPECT_NEAR(fit_probability(error, gib(roles)),
                below_by_integral((140 - mean) / std::sqrt(variance)), 1e-6)
        << roles;
    EXPECT_NEAR(static_cast<double>(deviation_of(error, gib(roles)).value),
                std::sqrt(variance) * kGiB, 2);
  }
}

/// Each quantity is drawn by itself: what the limit allows fails as often as the risk says.
TEST(MemoryLimit, DrawsRunOutAsOftenAsTheRiskSays) {
  std::mt19937_64 random(20261122);
  std::normal_distribution<double> normal;
  for (const double risk : {0.4, 0.1, 0.02}) {
    const auto roles = static_cast<double>(most_bytes(error_of(), risk).value);
    constexpr int kDraws = 400'000;
    int failed = 0;
    for (int i = 0; i < kDraws; ++i) {
      const double held = roles * (1.03 + 0.025 * normal(random)) +
                          2e9 * (1 + 0.3 * normal(random)) + (3.4 + 0.6 * normal(random)) * kGiB +
                          0.025 * 140 * kGiB * (1 + 0.5 * normal(random));
      failed += held > 140 * kGiB ? 1 : 0;
    }
    const double noise = std::sqrt(risk * (1 - risk) / kDraws);
    EXPECT_NEAR(static_cast<double>(failed) / kDraws, risk, 4 * noise) << risk;
  }
}

TEST(MemoryLimit, TheLimitIsTheMostThatHoldsAndFallsWithTheRisk) {
  const MemoryError error = error_of();
  Bytes before{1LL << 62};
  for (const double risk : {0.5, 0.3, 0.1, 0.02, 0.002, 1e-4, 1e-6}) {
    const Bytes limit = most_bytes(error, risk);
    EXPECT_LT(limit, before) << risk;
    EXPECT_GE(fit_probability(error, limit), 1 - risk * (1 + 1e-9)) << risk;
    EXPECT_LT(fit_probability(error, limit + gib(0.001)), 1 - risk) << risk;
    before = limit;
  }
  // At one half nothing is left for the error bar.
  const double even = (140 - 2e9 / kGiB - 3.4 - 3.5) / 1.03;
  EXPECT_NEAR(static_cast<double>(most_bytes(error, 0.5).value), even * kGiB, 2);
}

TEST(MemoryLimit, ShrinksWithEveryPartOfTheErrorBar) {
  const Bytes limit = most_bytes(error_of(), 0.02);
  MemoryAccuracy other = kAccuracy;
  other.deviation *= 2;
  EXPECT_LT(most_bytes(error_of(other), 0.02), limit);
  other = kAccuracy;
  other.bias += 0.01;
  EXPECT_LT(most_bytes(error_of(other), 0.02), limit);
  other = kAccuracy;
  other.outside_deviation = gib(2);
  EXPECT_LT(most_bytes(error_of(other), 0.02), limit);
  Calibration wider = constants();
  wider.fragmentation.error = 1;
  EXPECT_LT(most_bytes(memory_error(cluster_with(gib(140)), wider, kAccuracy), 0.02), limit);
  wider = constants();
  wider.reserve_bytes.error = 2;
  EXPECT_LT(most_bytes(memory_error(cluster_with(gib(140)), wider, kAccuracy), 0.02), limit);
}

TEST(MemoryLimit, IsNothingWhereTheDeviceIsTooSmallForWhatIsBeside) {
  const MemoryError error = memory_error(cluster_with(gib(4)), constants(), kAccuracy);
  EXPECT_EQ(most_bytes(error, 0.02), Bytes{});
}

/// Ranks that are processes on cores, and a rank alone, have no NCCL and no peers.
TEST(MemoryLimit, CountsNothingOutsideTheAllocatorOnCoresAndOfARankAlone) {
  Calibration cores = constants();
  cores.overlapped_dispatch = false;
  const MemoryError error = memory_error(cluster_with(gib(140)), cores, kAccuracy);
  EXPECT_NEAR(error.beside, 2e9 + 0.025 * 140 * kGiB, 1);
  ClusterSpec single = cluster_with(gib(140));
  single.gpus_per_node = 1;
  EXPECT_EQ(memory_error(single, constants(), kAccuracy).beside, error.beside);
}

/// The former margin, 5 % of the device, is what 1 of 50 exceeds of the shipped fragmentation.
TEST(MemoryLimit, TheFormerMarginIsTheUpperEndOfFragmentation) {
  Calibration only = constants();
  only.reserve_bytes = {};
  const MemoryError error = memory_error(cluster_with(gib(100)), only, {.source = "exact"});
  EXPECT_NEAR(static_cast<double>(most_bytes(error, 0.02).value), 94.93 * kGiB, 0.01 * kGiB);
}

TEST(MemoryLimit, TheMarginOfARequestAddsUpToWhatTheLimitLeaves) {
  PlanRequest request;
  request.cluster = cluster_with(gib(140));
  request.calibration = constants();
  request.memory = kAccuracy;
  const MemoryMargin margin = margin_of(request);
  EXPECT_EQ(
      usable_memory(request) + margin.fragments + margin.outside + margin.account + margin.safety,
      gib(140));
  EXPECT_NEAR(static_cast<double>(margin.fragments.value), 3.5 * kGiB, 2);
  EXPECT_NEAR(static_cast<double>(margin.outside.value), 3.4 * kGiB, 2);
  EXPECT_GT(margin.safety, gib(4));
  request.risk = 0.5;
  EXPECT_LT(margin_of(request).safety, gib(0.001));
}

TEST(MemoryAccuracy, EveryEngineHasOneAndThoseThatNobodyMeasuredTheWidest) {
  for (const Engine& engine : every_engine()) {
    EXPECT_GT(engine.memory.deviation, 0) << engine.name;
    EXPECT_FALSE(engine.memory.source.empty()) << engine.name;
    if (engine.memory.measured == 0) {
      EXPECT_GE(engine.memory.deviation, kUnmeasuredMemory.deviation) << engine.name;
      EXPECT_GE(engine.memory.outside_deviation, kUnmeasuredMemory.outside_deviation)
          << engine.name;
    } else {
      EXPECT_LT(engine.memory.deviation, kUnmeasuredMemory.deviation) << engine.name;
    }
  }
}

}  // namespace
}  // namespace tessera
