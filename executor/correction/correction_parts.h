// The parts of a rollout correction: weights, rejection, and metrics of how far apart the policies
// are. `log_ratio` is the trained policy's log-prob minus the rollout's, per entry, not clamped.
#pragma once

#include <algorithm>
#include <cmath>

#include "executor/correction/rollout_correction.h"

namespace tessera {

inline double within_safety(double log_ratio) { return std::clamp(log_ratio, -20.0, 20.0); }

/// f of every valid entry's value, 0 elsewhere.
template <class F>
Array mapped(const Rows& rows, View values, F f) {
  Array result(values.size(), 0.0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (rows.valid(static_cast<std::int64_t>(i))) result[i] = f(values[i]);
  }
  return result;
}
/// f of every value.
template <class F>
Array mapped(View values, F f) {
  Array result(values.begin(), values.end());
  for (double& x : result) x = f(x);
  return result;
}

double mean_of(View values);
/// Unbiased; 0 of fewer than two.
double deviation_of(View values);
double largest(View values);
double smallest(View values);
/// Share of the values of which `holds` is true.
template <class F>
double share_of(View values, F holds) {
  return values.empty() ? 0
                        : static_cast<double>(std::count_if(values.begin(), values.end(), holds)) /
                              static_cast<double>(values.size());
}
/// The valid entries of `values`, and the rows' values of rows that have any.
Array valid_of(const Rows& rows, View values);
Array of_nonempty_rows(const Rows& rows, View per_row);
/// The standard deviation of valid entries clamped to [low, high], from two means as verl takes it.
double clamped_deviation(const Rows& rows, View values, double low, double high);

/// Weights as RolloutCorrection says; metrics are added under verl's names without prefix.
Array rollout_weights(const Rows& rows, View log_ratio, const RolloutCorrection& options,
                      Metrics& metrics);

/// The mask without what is rejected.
std::vector<std::uint8_t> rejection_mask(const Rows& rows, View log_ratio,
                                         const std::vector<Rejection>& rejections,
                                         Metrics& metrics);

/// Perplexities, KL and chi^2 between the policies.
void add_off_policy_metrics(const Rows& rows, View trained_log_prob, View rollout_log_prob,
                            Metrics& metrics);

}  // namespace tessera
