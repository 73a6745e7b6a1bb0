// GMPO (Zhao et al. 2025, arXiv:2507.20673): the ratio of a sequence is the geometric mean of its
// tokens' ratios, each clipped on the side that its advantage rewards; the loss is the mean over
// sequences of -(mean advantage) x ratio x (geometric mean of the rollout weights).
//
// loss_agg_mode is not read. verl takes the mean over the sequences at hand, empty ones included;
// where the mini-batch's count is given it is divided by that, so that micro-batches add up.
#include "executor/losses/token_losses.h"

namespace tessera {
namespace {

/// The log-ratio clipped where it grows beyond what the advantage may gain.
double one_sided(double difference, double advantage, const PolicyLossOptions& options) {
  if (advantage > 0) return std::min(difference, clip_high(options));
  if (advantage < 0) return std::max(difference, -clip_low(options));
  return 0;
}

/// exp(row mean of log(weight)), 1 without weights.
Array sequence_weights(const PolicyBatch& batch) {
  if (batch.rollout_is_weights.empty())
    return Array(static_cast<std::size_t>(batch.rows.count()), 1);
  Array logs(batch.rollout_is_weights.size(), 0.0);
  for (std::size_t i = 0; i < logs.size(); ++i) {
    if (batch.rows.valid(static_cast<std::int64_t>(i))) {
      logs[i] = std::log(batch.rollout_is_weights[i] + 1e-10);
    }
  }
  Array weights = masked_mean_rows(batch.rows, logs);
  for (double& x : weights) x = std::exp(x);
  return weights;
}

Metrics metrics_of(const PolicyBatch& batch, View difference, const PolicyLossOptions& options) {
  Array kl(difference.size(), 0.0), clipped = kl, lower = kl;
  for (std::size_t i = 0; i < difference.size(); ++i) {
    kl[i] = -difference[i];
    const bool outside = difference[i] < -clip_low(options) || difference[i] > clip_high(options);
    clipped[i] = outside && batch.advantages[i] > 0 ? 1 : 0;
    lower[i] = outside && batch.advantages[i] < 0 ? 1 : 0;
  }
  return {{"actor/ppo_kl", masked_mean(batch.rows, kl)},
          {"actor/pg_clipfrac", masked_mean(batch.rows, clipped)},
          {"actor/pg_clipfrac_lower", masked_mean(batch.rows, lower)}};
}

Loss geo_mean(const PolicyBatch& batch, const PolicyLossOptions& options,
              const Aggregation& aggregation) {
  const Rows& rows = batch.rows;
  const Array difference = log_ratios(batch);
  Array clipped(difference.size(), 0.0);
  for (std::size_t i = 0; i < clipped.size(); ++i) {
    clipped[i] = one_sided(difference[i], batch.advantages[i], options);
  }
  const Array log_ratio = masked_mean_rows(rows, clipped);
  const Array advantage = masked_mean_rows(rows, batch.advantages);
  const Array weight = sequence_weights(batch);
  const auto count = static_cast<double>(aggregation.global_batch_size.value_or(rows.count()));
  const double share =
      aggregation.global_batch_size ? static_cast<double>(aggregation.dp_size) / count : 1 / count;

  Loss loss{.gradient = Array(difference.size(), 0.0),
            .metrics = metrics_of(batch, difference, options)};
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    const double value = -advantage[row] * std::exp(log_ratio[row]) * weight[row] * share;
    loss.value += value;
    const auto length = static_cast<double>(rows.valid_in(row));
    for (std::int64_t entry = rows.begin[row]; entry < rows.begin[row + 1]; ++entry) {
      const auto i = static_cast<std::size_t>(entry);
      const bool moves =
          rows.valid(entry) && batch.advantages[i] != 0 && clipped[i] == difference[i];
      if (moves) loss.gradient[i] = value / length;
    }
  }
  return loss;
}

}  // namespace

constinit const PolicyLoss kGeoMean{.name = "geo_mean", .compute = geo_mean};

}  // namespace tessera
