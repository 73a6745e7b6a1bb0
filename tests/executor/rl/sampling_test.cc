#include "executor/rl/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "cost_models/documents/problem.h"
#include "tests/executor/rl/reference_logits.h"

namespace tessera {
namespace {

std::vector<float> random_logits(std::size_t size, unsigned seed, float spread = 2) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> logits(size);
  for (float& x : logits) x = normal(engine);
  return logits;
}

std::vector<double> softmax(const std::vector<float>& logits, double temperature) {
  std::vector<double> p(logits.begin(), logits.end());
  const double top = *std::max_element(p.begin(), p.end());
  for (double& x : p) x = std::exp((x - top) / temperature);
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= sum;
  return p;
}

/// The tokens that top-k and top-p keep, by definition: sort, cut at k, renormalise, then take
/// tokens until their share reaches top_p.
std::vector<double> restricted(const std::vector<float>& logits, const SamplingOptions& options) {
  const std::vector<double> p = softmax(logits, options.temperature);
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  if (options.top_k > 0 && static_cast<std::size_t>(options.top_k) < order.size()) {
    order.resize(static_cast<std::size_t>(options.top_k));
  }
  double total = 0;
  for (const std::size_t i : order) total += p[i];
  std::vector<double> kept(p.size(), 0.0);
  double share = 0;
  for (const std::size_t i : order) {
    if (share >= options.top_p && options.top_p < 1) break;
    kept[i] = p[i];
    share += p[i] / total;
  }
  const double sum = std::accumulate(kept.begin(), kept.end(), 0.0);
  for (double& x : kept) x /= sum;
  return kept;
}

/// Pearson's statistic of `draws` draws against `p`, and the bound mean + 5 deviations of the
/// chi-square distribution.
void expect_chi_square(const std::vector<float>& logits, const SamplingOptions& options,
                       const std::vector<double>& p, std::uint64_t seed) {
  const std::uint32_t draws = 60000;
  std::vector<int> count(p.size(), 0);
  for (std::uint32_t i = 0; i < draws; ++i) {
    const double u = uniform(seed, {i % 7, i / 1000, i % 1000, i % 13});
    ++count[static_cast<std::size_t>(draw(logits, options, u).token)];
  }
  double statistic = 0, degrees = -1;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double expected = p[i] * draws;
    if (expected < 5) {
      if (p[i] == 0) {
        EXPECT_EQ(count[i], 0) << "token " << i << " is excluded";
      }
      continue;
    }
    statistic += (count[i] - expected) * (count[i] - expected) / expected;
    ++degrees;
  }
  ASSERT_GT(degrees, 2);
  EXPECT_LT(statistic, degrees + 5 * std::sqrt(2 * degrees));
  EXPECT_GT(statistic, degrees - 5 * std::sqrt(2 * degrees));
}

// Known answers of Philox4x32-10, from Random123's tests/kat_vectors.
TEST(Sampling, RandomWordsArePhilox4x32With10Rounds) {
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(random_words(0, {0, 0, 0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(random_words(0xffffffffffffffffull, {ones, ones, ones, ones}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(random_words(0x299f31d0a4093822ull, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Sampling, DrawsFollowTheProbabilities) {
  for (unsigned seed = 0; seed < 3; ++seed) {
    const auto logits = random_logits(20 + 10 * seed, seed, 1);
    for (const double temperature : {0.7, 1.0, 2.0}) {
      SCOPED_TRACE(temperature);
      const SamplingOptions options{.temperature = temperature};
      expect_chi_square(logits, options, softmax(logits, temperature), 1234 + seed);
    }
  }
}

TEST(Sampling, TopKAndTopPKeepWhatTheirDefinitionsKeep) {
  const auto logits = random_logits(40, 9, 1);
  for (const SamplingOptions& options :
       {SamplingOptions{.temperature = 1.0, .top_k = 7},
        SamplingOptions{.temperature = 0.8, .top_p = 0.8},
        SamplingOptions{.temperature = 1.3, .top_k = 20, .top_p = 0.6}}) {
    SCOPED_TRACE(testing::Message() << options.top_k << " " << options.top_p);
    expect_chi_square(logits, options, restricted(logits, options), 77);
  }
}

TEST(Sampling, SupportOfTopKAndTopPEqualsBruteForceOnRandomRows) {
  std::mt19937 engine(5);
  for (unsigned round = 0; round < 200; ++round) {
    auto logits = random_logits(1 + engine() % 12, round);
    if (round % 3 == 0) {  // equal logits: lower ids first
      for (float& x : logits) x = std::round(x);
    }
    const SamplingOptions options{
        .temperature = 0.5 + 0.1 * static_cast<double>(engine() % 10),
        .top_k = static_cast<std::int64_t>(engine() % 6),
        .top_p = engine() % 2 == 0 ? 1.0 : 0.05 + 0.09 * static_cast<double>(engine() % 10)};
    const auto p = restricted(logits, options);
    std::vector<int> seen(p.size(), 0);
    for (std::uint32_t i = 0; i < 3000; ++i) {
      const double u = (i + 0.5) / 3000;
      seen[static_cast<std::size_t>(draw(logits, options, u).token)] = 1;
    }
    for (std::size_t i = 0; i < p.size(); ++i) {
      if (p[i] == 0 || p[i] > 1e-3) {
        EXPECT_EQ(seen[i], p[i] > 0 ? 1 : 0) << "round " << round << " token " << i;
      }
    }
  }
}

TEST(Sampling, ADrawInvertsTheCumulativeDistribution) {
  const std::vector<float> logits = {std::log(0.1f), std::log(0.2f), std::log(0.3f),
                                     std::log(0.4f)};
  const SamplingOptions options;
  EXPECT_EQ(draw(logits, options, 0.0).token, 0);
  EXPECT_EQ(draw(logits, options, 0.0999).token, 0);
  EXPECT_EQ(draw(logits, options, 0.1001).token, 1);
  EXPECT_EQ(draw(logits, options, 0.2999).token, 1);
  EXPECT_EQ(draw(logits, options, 0.5999).token, 2);
  EXPECT_EQ(draw(logits, options, 0.6001).token, 3);
  EXPECT_EQ(draw(logits, options, 1 - 0x1p-53).token, 3);
}

TEST(Sampling, LogProbIsThatOfTheWholeDistributionAtTheTemperature) {
  const auto logits = random_logits(100, 3);
  for (const double temperature : {0.6, 1.0, 1.7}) {
    std::vector<double> scaled;
    for (const float x : logits) scaled.push_back(static_cast<double>(x) / temperature);
    for (int i = 0; i < 50; ++i) {
      const Draw got =
          draw(logits, {.temperature = temperature, .top_k = 30, .top_p = 0.9}, i / 50.0);
      EXPECT_NEAR(got.log_prob, logit_statistics(scaled, got.token).log_prob, 1e-6);
    }
  }
}

TEST(Sampling, TemperatureZeroTakesTheFirstLargestLogit) {
  const std::vector<float> logits = {1, 5, -2, 5, 4};
  for (const double u : {0.0, 0.5, 0.999}) {
    const Draw got = draw(logits, {.temperature = 0}, u);
    EXPECT_EQ(got.token, 1);
    EXPECT_NEAR(got.log_prob, std::log(softmax(logits, 1)[1]), 1e-6);
  }
}

TEST(Sampling, MaskedTokensAreNeverDrawn) {
  const float never = -std::numeric_limits<float>::infinity();
  const std::vector<float> logits = {never, 0, never, 1, never};
  for (int i = 0; i <= 1000; ++i) {
    const Draw got = draw(logits, {}, std::min(i / 1000.0, 1 - 0x1p-53));
    EXPECT_TRUE(got.token == 1 || got.token == 3);
  }
}

TEST(Sampling, RowsThatAreNotLogitsAreRefused) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinite = std::numeric_limits<float>::infinity();
  EXPECT_THROW(draw(std::vector<float>{0, nan, 1}, {}, 0.5), NoDraw);
  EXPECT_THROW(draw(std::vector<float>{nan, 0}, {}, 0.5), Error);
  EXPECT_THROW(draw(std::vector<float>{0, infinite}, {}, 0.5), Error);
  EXPECT_THROW(draw(std::vector<float>{-infinite, -infinite}, {}, 0.5), Error);
  EXPECT_THROW(draw(std::vector<float>{}, {}, 0.5), Error);
}

TEST(Sampling, EveryPartOfTheIndexChangesTheNumberAndNothingElseDoes) {
  const DrawIndex index{3, 14, 15, 92};
  const double x = uniform(42, index);
  EXPECT_EQ(uniform(42, index), x);
  EXPECT_NE(uniform(43, index), x);
  EXPECT_NE(uniform(42 | (1ull << 40), index), x);
  EXPECT_NE(uniform(42, {4, 14, 15, 92}), x);
  EXPECT_NE(uniform(42, {3, 15, 15, 92}), x);
  EXPECT_NE(uniform(42, {3, 14, 16, 92}), x);
  EXPECT_NE(uniform(42, {3, 14, 15, 93}), x);
}

}  // namespace
}  // namespace tessera
