// Probability ratios of a token and their clipping: shared by the policy losses.
#pragma once

#include <algorithm>
#include <cmath>

#include "executor/rl/policy_losses.h"

namespace tessera {

struct RatioClip {
  double low, high;  // bounds of the ratio
  double apply(double ratio) const { return std::clamp(ratio, low, high); }
  bool inside(double ratio) const { return ratio >= low && ratio <= high; }
};

inline RatioClip clip_of(const PolicyLossOptions& options) {
  return {1 - options.clip_ratio_low.value_or(options.clip_ratio),
          1 + options.clip_ratio_high.value_or(options.clip_ratio)};
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
