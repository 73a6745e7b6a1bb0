// Drawing tokens so that a draw depends on what it is for and on nothing else.
//
// The random number of a draw is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011) at key = seed and counter = (step, prompt, sample, position): batch, replica,
// layout and resume cannot change it. The draw inverts the cumulative distribution in the order of
// token ids. Probabilities are taken as integers, floor(2^40 exp((logit - largest) / temperature))
// by draw_weight.h, so that sums have no rounding and any order of summation, on any device,
// decides alike; a token less likely than 2^-40 of the most likely one is never drawn.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

#include "cost_models/documents/problem.h"

namespace tessera {

/// A row of logits holds NaN, +inf or nothing finite: no token can be drawn. Of one rank alone.
class NoDraw : public Error {
 public:
  NoDraw() : Error(ExitCode::check_failed, "a row of logits holds NaN, +inf or nothing finite") {}
};

/// Which token is drawn. `position` counts from 0 at the response's first token.
struct DrawIndex {
  std::uint32_t step = 0, prompt = 0, sample = 0, position = 0;
};

/// The four words of Philox4x32-10 at this counter.
std::array<std::uint32_t, 4> random_words(std::uint64_t seed, const DrawIndex& index);

/// A draw from the first two words: 53 bits, in [0, 1).
double uniform(std::uint64_t seed, const DrawIndex& index);

struct SamplingOptions {
  double temperature = 1;  // 0 = greedy: the largest logit, the lowest id among equals
  std::int64_t top_k = 0;  // <= 0: off. Keeps the k largest logits, lower ids first among equals
  /// 1: off. Keeps the most likely tokens (of the top k) until their share reaches top_p; the token
  /// that reaches it is kept, so at least one is.
  double top_p = 1;
  /// 0: off. Of what these keep, keeps tokens at least so likely as this part of the most likely
  /// one (transformers' MinPLogitsWarper, behind top-k and top-p as there).
  double min_p = 0;

  auto operator<=>(const SamplingOptions&) const = default;
};

struct Draw {
  std::int32_t token = 0;
  /// log softmax(logits / temperature) at the token over the whole vocabulary, as training computes
  /// it: top-k, top-p and min-p do not enter. Greedy: temperature 1.
  float log_prob = 0;
};

/// Draws from one row of logits with `uniform` in [0, 1). Logits may be -inf but not all of them.
/// Throws NoDraw where a logit is NaN or +inf.
Draw draw(std::span<const float> logits, const SamplingOptions& options, double uniform);

/// The log_prob of a draw of `token` from this row of logits. Throws as draw().
float drawn_log_prob(std::span<const float> logits, std::size_t token, double temperature);

/// 2^40, the integer weight of the most likely token.
inline constexpr double kWeightScale = 1099511627776.0;

/// The smallest integer weight that min_p keeps; 0 where it is off.
std::int64_t least_weight(const SamplingOptions& options);

/// log of the sum of exp((logit - largest) / temperature) over a row whose weights sum to `total`.
double log_normalizer(std::int64_t total);

/// The largest integer weight sum that `uniform` leaves below the drawn token, for weights that sum
/// to `total`: the first token whose running sum exceeds it is drawn.
std::int64_t threshold(double uniform, std::int64_t total);

}  // namespace tessera
