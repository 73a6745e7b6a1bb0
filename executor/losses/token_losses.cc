#include "executor/losses/token_losses.h"

#include <utility>

namespace tessera {

Array log_ratios(const PolicyBatch& batch) {
  Array difference(batch.log_prob.begin(), batch.log_prob.end());
  for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= batch.old_log_prob[i];
  return difference;
}

std::vector<TokenLoss> token_losses(const PolicyBatch& batch, const PolicyLossOptions& options,
                                    TokenLoss (*of_token)(const TokenInput& token,
                                                          const PolicyLossOptions& options)) {
  const Array difference = log_ratios(batch);
  const Array row_mean = masked_mean_rows(batch.rows, difference);
  std::vector<TokenLoss> tokens(difference.size());
  for (std::int64_t row = 0; row < batch.rows.count(); ++row) {
    for (std::int64_t entry = batch.rows.begin[row]; entry < batch.rows.begin[row + 1]; ++entry) {
      if (!batch.rows.valid(entry)) continue;
      const auto i = static_cast<std::size_t>(entry);
      tokens[i] = of_token({.log_prob = batch.log_prob[i],
                            .old_log_prob = batch.old_log_prob[i],
                            .difference = difference[i],
                            .row_difference = row_mean[row],
                            .advantage = batch.advantages[i]},
                           options);
    }
  }
  return tokens;
}

Loss aggregated(const PolicyBatch& batch, std::span<const TokenLoss> tokens,
                const Aggregation& aggregation, Reported reported) {
  const Array weights = aggregation_weights(batch.rows, aggregation);
  Loss loss{.gradient = Array(tokens.size(), 0.0)};
  Array clipped(tokens.size()), lower(tokens.size()), kl(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    clipped[i] = tokens[i].clipped ? 1 : 0;
    lower[i] = tokens[i].clipped_lower ? 1 : 0;
    kl[i] = tokens[i].kl;
    if (weights[i] == 0) continue;
    const double weight =
        weights[i] * (batch.rollout_is_weights.empty() ? 1 : batch.rollout_is_weights[i]);
    loss.value += weight * tokens[i].value;
    loss.gradient[i] = weight * tokens[i].slope;
  }
  if (reported.kl) loss.metrics["actor/ppo_kl"] = masked_mean(batch.rows, kl);
  if (reported.clipped) loss.metrics["actor/pg_clipfrac"] = masked_mean(batch.rows, clipped);
  if (reported.clipped_lower) {
    loss.metrics["actor/pg_clipfrac_lower"] = masked_mean(batch.rows, lower);
  }
  return loss;
}

Array covariances(const PolicyBatch& batch) {
  const double advantage = masked_mean(batch.rows, batch.advantages);
  const double log_prob = masked_mean(batch.rows, batch.log_prob);
  Array covariance(batch.log_prob.size(), 0.0);
  for (std::size_t i = 0; i < covariance.size(); ++i) {
    if (!batch.rows.valid(static_cast<std::int64_t>(i))) continue;
    covariance[i] = (batch.advantages[i] - advantage) * (batch.log_prob[i] - log_prob);
  }
  return covariance;
}

std::int64_t share_of_tokens(const Rows& rows, double ratio) {
  const auto tokens = static_cast<double>(rows.valid_entries());
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(ratio * tokens));
}

}  // namespace tessera
