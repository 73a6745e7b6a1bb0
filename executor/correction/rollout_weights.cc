#include "executor/correction/correction_parts.h"

namespace tessera {
namespace {

/// exp(d) of a token or of its row, before any bound; 0 where not valid.
Array raw_weights(const Rows& rows, View log_ratio, View row_sums, WeightLevel level) {
  Array weights(log_ratio.size(), 0.0);
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    for (std::int64_t i = rows.begin[row]; i < rows.begin[row + 1]; ++i) {
      if (!rows.valid(i)) continue;
      const double d = level == WeightLevel::token ? log_ratio[static_cast<std::size_t>(i)]
                                                   : row_sums[static_cast<std::size_t>(row)];
      weights[static_cast<std::size_t>(i)] = std::exp(within_safety(d));
    }
  }
  return weights;
}

/// Largest, smallest and shares beyond the bounds: of tokens, or of rows by their sums.
void add_extremes(const Rows& rows, View weights, View raw, View row_sums, WeightLevel level,
                  double upper, double lower, Metrics& metrics) {
  if (level == WeightLevel::sequence) {
    metrics["rollout_is_max"] = std::exp(std::min(largest(row_sums), 20.0));
    metrics["rollout_is_min"] = std::exp(smallest(row_sums));
    metrics["rollout_is_ratio_fraction_high"] =
        share_of(row_sums, [&](double x) { return x > std::log(upper); });
    metrics["rollout_is_ratio_fraction_low"] =
        share_of(row_sums, [&](double x) { return x < std::log(lower); });
    return;
  }
  const Array valid = valid_of(rows, weights), valid_raw = valid_of(rows, raw);
  metrics["rollout_is_max"] = largest(valid);
  metrics["rollout_is_min"] = smallest(valid);
  metrics["rollout_is_ratio_fraction_high"] =
      share_of(valid_raw, [&](double x) { return x > upper; });
  metrics["rollout_is_ratio_fraction_low"] =
      share_of(valid_raw, [&](double x) { return x < lower; });
}

void add_sequence_metrics(const Rows& rows, View weights, View raw, double upper, double lower,
                          Metrics& metrics) {
  const Array means = masked_mean_rows(rows, weights), raw_means = masked_mean_rows(rows, raw);
  metrics["rollout_is_seq_mean"] = mean_of(means);
  metrics["rollout_is_seq_std"] = deviation_of(means);
  metrics["rollout_is_seq_max"] = largest(means);
  metrics["rollout_is_seq_min"] = smallest(means);
  metrics["rollout_is_seq_max_deviation"] =
      largest(mapped(means, [](double x) { return std::abs(x - 1); }));
  metrics["rollout_is_seq_fraction_high"] =
      share_of(raw_means, [&](double x) { return x > upper; });
  metrics["rollout_is_seq_fraction_low"] = share_of(raw_means, [&](double x) { return x < lower; });
}

/// 1 / mean of (w / mean w)^2 of the weights within [0, upper].
double effective_sample_size(const Rows& rows, View weights, double upper) {
  const Array clamped = mapped(weights, [&](double x) { return std::clamp(x, 0.0, upper); });
  const double mean = masked_mean(rows, clamped) + 1e-8;
  return 1 / masked_mean(rows, mapped(clamped, [&](double x) { return x * x / (mean * mean); }));
}

/// Divides by the mean over tokens, or over rows that have any.
void normalize(const Rows& rows, WeightLevel level, Array& weights, Metrics& metrics) {
  const double mean = level == WeightLevel::token
                          ? masked_mean(rows, weights)
                          : mean_of(of_nonempty_rows(rows, masked_mean_rows(rows, weights)));
  const double factor = mean > 1e-8 ? mean : 1;
  for (double& x : weights) x /= factor;
  metrics["rollout_is_batch_norm_factor"] = factor;
}

}  // namespace

Array rollout_weights(const Rows& rows, View log_ratio, const RolloutCorrection& options,
                      Metrics& metrics) {
  const WeightBounds& bounds = options.bounds;
  const double lower = bounds.lower.value_or(1 / bounds.upper);
  const Array row_sums = masked_sum_rows(rows, log_ratio);
  const Array raw = raw_weights(rows, log_ratio, row_sums, options.rollout_is);
  const auto outside = [&](double x) { return x < *bounds.lower || x > bounds.upper; };
  Array weights = mapped(raw, [&](double x) {
    if (!bounds.lower) return std::min(x, bounds.upper);
    return outside(x) ? 0.0 : x;
  });
  add_extremes(rows, weights, raw, row_sums, options.rollout_is, bounds.upper, lower, metrics);
  metrics["rollout_is_mean"] = masked_mean(rows, weights);
  metrics["rollout_is_std"] = clamped_deviation(rows, weights, 0, bounds.upper);
  metrics["rollout_is_eff_sample_size"] = effective_sample_size(rows, weights, bounds.upper);
  add_sequence_metrics(rows, weights, raw, bounds.upper, lower, metrics);
  if (bounds.lower) metrics["rollout_is_oob_ratio"] = share_of(valid_of(rows, raw), outside);
  if (options.batch_normalize) normalize(rows, options.rollout_is, weights, metrics);
  return weights;
}

}  // namespace tessera
