// What policy losses are made of: the loss of single tokens, probability ratios and their clipping,
// and the way from tokens to a Loss.
//
// Plain values and pure functions, fp64.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "executor/losses/policy_losses.h"

namespace tessera {

/// One valid token.
struct TokenInput {
  double log_prob = 0, old_log_prob = 0;
  double difference = 0;      // log_prob - old_log_prob
  double row_difference = 0;  // its mean over the sequence
  double advantage = 0;
};

/// The contribution of one token: its loss, the loss's slope in log_prob, and the indicators whose
/// means are reported.
struct TokenLoss {
  double value = 0, slope = 0;
  bool clipped = false, clipped_lower = false;
  double kl = 0;
};

/// Which means a loss reports: actor/ppo_kl, actor/pg_clipfrac, actor/pg_clipfrac_lower.
struct Reported {
  bool kl = true, clipped = true, clipped_lower = true;
};

/// Every valid token by `of_token`; others are zero.
std::vector<TokenLoss> token_losses(const PolicyBatch& batch, const PolicyLossOptions& options,
                                    TokenLoss (*of_token)(const TokenInput& token,
                                                          const PolicyLossOptions& options));

/// log_prob - old_log_prob of every entry.
Array log_ratios(const PolicyBatch& batch);

/// Tokens aggregated, each times its rollout weight.
Loss aggregated(const PolicyBatch& batch, std::span<const TokenLoss> tokens,
                const Aggregation& aggregation, Reported reported = {});

/// A policy loss whose tokens depend on nothing but themselves and their sequence's mean.
template <TokenLoss (*of_token)(const TokenInput&, const PolicyLossOptions&), Reported reported>
Loss token_wise(const PolicyBatch& batch, const PolicyLossOptions& options,
                const Aggregation& aggregation) {
  return aggregated(batch, token_losses(batch, options, of_token), aggregation, reported);
}

/// (A - mean A) (log_prob - mean log_prob) of every valid entry, means over the valid ones.
Array covariances(const PolicyBatch& batch);

/// How many of the valid tokens a share is: at least one.
std::int64_t share_of_tokens(const Rows& rows, double ratio);

struct RatioClip {
  double low, high;  // bounds of the ratio
  double apply(double ratio) const { return std::clamp(ratio, low, high); }
  bool inside(double ratio) const { return ratio >= low && ratio <= high; }
};

/// How far a ratio may lie below and above 1 (dppo: a divergence above 0).
inline double clip_low(const PolicyLossOptions& options) {
  return options.clip_ratio_low.value_or(options.clip_ratio);
}
inline double clip_high(const PolicyLossOptions& options) {
  return options.clip_ratio_high.value_or(options.clip_ratio);
}
inline RatioClip clip_of(const PolicyLossOptions& options) {
  return {1 - clip_low(options), 1 + clip_high(options)};
}

/// max(-A r, -A clip(r)) for a ratio whose derivative in log_prob is `ratio_slope`.
inline TokenLoss clipped_surrogate(double advantage, double ratio, double ratio_slope,
                                   const RatioClip& clip) {
  const double first = -advantage * ratio;
  const double second = -advantage * clip.apply(ratio);
  TokenLoss token{.value = std::max(first, second), .clipped = second > first};
  if (!token.clipped || clip.inside(ratio)) token.slope = -advantage * ratio_slope;
  return token;
}

/// The log-ratio clamped against overflow; the gradient is 0 outside.
struct ClampedRatio {
  double log_ratio, ratio, slope;
};
inline ClampedRatio clamped_ratio(double difference) {
  const double log_ratio = std::clamp(difference, -20.0, 20.0);
  const double ratio = std::exp(log_ratio);
  return {log_ratio, ratio, log_ratio == difference ? ratio : 0};
}

}  // namespace tessera
