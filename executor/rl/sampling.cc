#include "executor/rl/sampling.h"

#include <Random123/philox.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "executor/rl/draw_weight.h"

namespace tessera {
namespace {

/// The position of the largest logit, the first among equals. Throws where the row is no row of
/// logits.
std::size_t largest(std::span<const float> logits) {
  std::size_t best = 0;
  bool bad = logits.empty();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > logits[best]) best = i;
    bad = bad || std::isnan(logits[i]);
  }
  if (bad || !std::isfinite(logits[best])) throw NoDraw();
  return best;
}

/// Integer weights by token.
std::vector<std::int64_t> weights_of(std::span<const float> logits, float top, double temperature) {
  const float scale = exponent_scale(temperature);
  std::vector<std::int64_t> weights;
  weights.reserve(logits.size());
  for (const float logit : logits) weights.push_back(draw_weight(logit, top, scale));
  return weights;
}

/// Sets the weights that top-k and top-p exclude to 0, then those below min-p's.
void restrict_weights(std::span<const float> logits, const SamplingOptions& options,
                      std::vector<std::int64_t>& weights) {
  const std::int64_t least = least_weight(options);
  const std::size_t k = options.top_k > 0 ? static_cast<std::size_t>(options.top_k) : logits.size();
  if (k >= logits.size() && options.top_p >= 1) {
    for (std::int64_t& weight : weights) weight = weight >= least ? weight : 0;
    return;
  }
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](std::int32_t a, std::int32_t b) {
    const float x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  };
  const auto kept = order.begin() + static_cast<std::ptrdiff_t>(std::min(k, order.size()));
  std::partial_sort(order.begin(), kept, order.end(), before);

  std::int64_t total = 0;
  for (auto it = order.begin(); it != kept; ++it) total += weights[static_cast<std::size_t>(*it)];
  const double limit = options.top_p >= 1 ? std::numeric_limits<double>::infinity()
                                          : options.top_p * static_cast<double>(total);
  std::int64_t running = 0;
  for (auto it = order.begin(); it != order.end(); ++it) {
    std::int64_t& weight = weights[static_cast<std::size_t>(*it)];
    const bool within = it < kept && (running == 0 || static_cast<double>(running) < limit);
    running += within ? weight : 0;
    if (!within || weight < least) weight = 0;
  }
}

/// `total` is the sum of all weights of the row, `temperature` above 0.
float log_prob_of(float logit, float top, double temperature, std::int64_t total) {
  const double gap = static_cast<double>(logit) - static_cast<double>(top);
  return static_cast<float>(gap / temperature - log_normalizer(total));
}

}  // namespace

std::array<std::uint32_t, 4> random_words(std::uint64_t seed, const DrawIndex& index) {
  const r123::Philox4x32::ctr_type counter = {
      {index.step, index.prompt, index.sample, index.position}};
  const r123::Philox4x32::key_type key = {
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
  const auto words = r123::Philox4x32()(counter, key);
  return {words[0], words[1], words[2], words[3]};
}

double uniform(std::uint64_t seed, const DrawIndex& index) {
  const auto words = random_words(seed, index);
  const std::uint64_t bits = (std::uint64_t{words[0]} << 32) | words[1];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

std::int64_t threshold(double uniform, std::int64_t total) {
  const auto below = static_cast<std::int64_t>(uniform * static_cast<double>(total));
  return std::min(below, total - 1);
}

std::int64_t least_weight(const SamplingOptions& options) {
  return static_cast<std::int64_t>(std::ceil(options.min_p * kWeightScale));
}

double log_normalizer(std::int64_t total) {
  return std::log(static_cast<double>(total) / kWeightScale);
}

Draw draw(std::span<const float> logits, const SamplingOptions& options, double uniform) {
  const std::size_t best = largest(logits);
  const float top = logits[best];
  const bool greedy = options.temperature == 0;
  const double temperature = greedy ? 1 : options.temperature;
  std::vector<std::int64_t> weights = weights_of(logits, top, temperature);
  const std::int64_t all = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});

  std::size_t token = best;
  if (!greedy) {
    restrict_weights(logits, options, weights);
    const std::int64_t total = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
    const std::int64_t target = threshold(uniform, total);
    token = 0;
    for (std::int64_t running = weights[0]; running <= target; running += weights[token]) {
      ++token;
    }
  }
  return {static_cast<std::int32_t>(token), log_prob_of(logits[token], top, temperature, all)};
}

float drawn_log_prob(std::span<const float> logits, std::size_t token, double temperature) {
  const float top = logits[largest(logits)];
  const float scale = exponent_scale(temperature);
  std::int64_t all = 0;
  for (const float logit : logits) all += draw_weight(logit, top, scale);
  return log_prob_of(logits[token], top, temperature, all);
}

}  // namespace tessera
