// Rollout correction: importance weights and rejection where the policy that generated is not the
// one that is trained (rounding, other kernels, older weights).
//
// With d = log-prob of the trained policy - log-prob of the rollout, clamped to +-20: weights are
// exp(d) of a token, or exp(row sum of d) of a sequence, truncated at a bound, or 0 outside two
// (IcePop); rejection takes tokens or whole sequences out of the mask by a statistic of k1 = -d,
// k2 = d^2 / 2 or k3 = exp(d) - 1 - d. Plain values and pure functions, fp64. Source: verl 0.9.1,
// trainer/ppo/rollout_corr_helper.py.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/rl/rows.h"

namespace tessera {

enum class WeightLevel : std::uint8_t { none, token, sequence };

/// verl's `rollout_is_threshold`: a number truncates, "low_high" zeroes outside.
struct WeightBounds {
  double upper = 2;
  std::optional<double> lower;
};
/// Nothing where the text is neither, or not 0 < low <= high.
std::optional<WeightBounds> weight_bounds_from(std::string_view text);

enum class RejectionLevel : std::uint8_t { token, sequence_sum, sequence_mean, sequence_max };

/// One of verl's `rollout_rs` options with its threshold: a statistic must lie within the bounds.
/// Of k1 they are logarithms of bounds of rollout/trained; k2 and k3 have no lower one.
struct Rejection {
  std::string name;  // verl's: token_k1, seq_mean_k3, ...
  RejectionLevel level = RejectionLevel::token;
  int estimator = 1;  // 1, 2 or 3
  std::optional<double> lower;
  double upper = 0;

  double low() const { return lower.value_or(0); }
  bool accepts(double x) const { return x <= upper && (!lower || x >= *lower); }
};
/// Of comma-separated options ("token_k1,seq_mean_k3") and thresholds, one for all or one for each;
/// options named twice count once. Nothing where a name or threshold is not verl's.
std::optional<std::vector<Rejection>> rejections_from(std::string_view options,
                                                      std::string_view thresholds);

struct RolloutCorrection {
  WeightLevel rollout_is = WeightLevel::none;
  WeightBounds bounds;
  bool batch_normalize = false;  // weights are divided by their mean
  std::vector<Rejection> rejections;
};

struct Correction {
  Array weights;                   // per entry, 0 where not valid; empty without rollout_is
  std::vector<std::uint8_t> kept;  // the mask without what was rejected, per entry
  Metrics metrics;                 // rollout_corr/*
};

/// Nothing is computed for rows without any valid entry.
Correction correct_rollout(const Rows& rows, View trained_log_prob, View rollout_log_prob,
                           const RolloutCorrection& options);

}  // namespace tessera
