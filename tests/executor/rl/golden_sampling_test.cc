// Which tokens may be drawn, against transformers' warpers (scripts/make_min_p_vectors.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "executor/rl/sampling.h"

namespace tessera {
namespace {

using nlohmann::json;

/// The tokens that some random number draws; those of 3e-5 and more are found.
std::set<std::int32_t> drawn(const std::vector<float>& logits, const SamplingOptions& options) {
  std::set<std::int32_t> tokens;
  constexpr int kDraws = 60000;
  for (int i = 0; i < kDraws; ++i) {
    tokens.insert(draw(logits, options, (i + 0.5) / kDraws).token);
  }
  return tokens;
}

TEST(GoldenSampling, MinPBehindTopKAndTopPKeepsWhatTransformersKeeps) {
  std::ifstream in(TESSERA_SOURCE_DIR "/tests/executor/rl/min_p.json");
  const json file = json::parse(in);
  int narrowed = 0;
  for (const json& one : file.at("cases")) {
    const auto logits = one.at("logits").get<std::vector<float>>();
    SamplingOptions options{.temperature = one.at("temperature"),
                            .top_k = one.at("top_k"),
                            .top_p = one.at("top_p"),
                            .min_p = one.at("min_p")};
    std::set<std::int32_t> kept;
    const float top = *std::max_element(logits.begin(), logits.end());
    double total = 0, least = 1;
    for (const std::int32_t token : one.at("kept").get<std::vector<std::int32_t>>()) {
      kept.insert(token);
      const double p =
          std::exp((logits[static_cast<std::size_t>(token)] - top) / options.temperature);
      total += p;
      least = std::min(least, p);
    }
    ASSERT_GT(least / total, 3e-5) << "no draw would find it";
    EXPECT_EQ(drawn(logits, options), kept) << one.dump();
    options.min_p = 0;
    narrowed += drawn(logits, options) != kept ? 1 : 0;
  }
  EXPECT_GT(narrowed, 40);
}

// The log-prob is of all tokens, as training computes it.
TEST(GoldenSampling, MinPDoesNotEnterTheLogProb) {
  const std::vector<float> logits{0, 1, 2, -1};
  const Draw all = draw(logits, {}, 0.99999), few = draw(logits, {.min_p = 0.9}, 0.5);
  EXPECT_EQ(few.token, 2);
  EXPECT_NE(all.token, 2);
  EXPECT_NEAR(few.log_prob, 2 - std::log(1 + std::exp(1) + std::exp(2) + std::exp(-1)), 1e-5);
}

}  // namespace
}  // namespace tessera
