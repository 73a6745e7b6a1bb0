#include "executor/rl/losses.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

std::vector<TokenLoss> token_losses(const PolicyBatch& batch, const PolicyLossOptions& options) {
  const std::size_t n = batch.log_prob.size();
  Array difference(n);
  for (std::size_t i = 0; i < n; ++i) difference[i] = batch.log_prob[i] - batch.old_log_prob[i];
  const Array row_mean = masked_mean_rows(batch.rows, difference);

  std::vector<TokenLoss> tokens(n);
  for (std::int64_t row = 0; row < batch.rows.count(); ++row) {
    for (std::int64_t entry = batch.rows.begin[row]; entry < batch.rows.begin[row + 1]; ++entry) {
      if (!batch.rows.valid(entry)) continue;
      const auto i = static_cast<std::size_t>(entry);
      tokens[i] = options.loss->of_token({.log_prob = batch.log_prob[i],
                                          .difference = difference[i],
                                          .row_difference = row_mean[row],
                                          .advantage = batch.advantages[i]},
                                         options);
    }
  }
  return tokens;
}

Metrics policy_metrics(const Rows& rows, std::span<const TokenLoss> tokens, bool clips) {
  Array clipped, lower, kl;
  for (const TokenLoss& token : tokens) {
    clipped.push_back(token.clipped ? 1 : 0);
    lower.push_back(token.clipped_lower ? 1 : 0);
    kl.push_back(token.kl);
  }
  Metrics metrics{{"actor/ppo_kl", masked_mean(rows, kl)}};
  if (!clips) return metrics;
  metrics["actor/pg_clipfrac"] = masked_mean(rows, clipped);
  metrics["actor/pg_clipfrac_lower"] = masked_mean(rows, lower);
  return metrics;
}

void check_sizes(const PolicyBatch& batch) {
  const auto n = static_cast<std::size_t>(batch.rows.entries());
  TESSERA_CHECK(batch.log_prob.size() == n && batch.old_log_prob.size() == n &&
                batch.advantages.size() == n);
  for (const View optional : {batch.rollout_is_weights, batch.ref_log_prob, batch.entropy}) {
    TESSERA_CHECK(optional.empty() || optional.size() == n);
  }
}

}  // namespace

Loss policy_loss(const PolicyBatch& batch, const PolicyLossOptions& options,
                 const Aggregation& aggregation) {
  check_sizes(batch);
  const std::vector<TokenLoss> tokens = token_losses(batch, options);
  const Array weights = aggregation_weights(batch.rows, aggregation);
  Loss loss{.gradient = Array(tokens.size(), 0.0),
            .metrics = policy_metrics(batch.rows, tokens, options.loss->clips)};
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (weights[i] == 0) continue;
    const double weight =
        weights[i] * (batch.rollout_is_weights.empty() ? 1 : batch.rollout_is_weights[i]);
    loss.value += weight * tokens[i].value;
    loss.gradient[i] = weight * tokens[i].slope;
  }
  return loss;
}

ActorLoss actor_objective(const PolicyBatch& batch, const ActorOptions& options,
                          const Aggregation& aggregation) {
  Loss policy = policy_loss(batch, options.policy, aggregation);
  const Array weights = aggregation_weights(batch.rows, aggregation);
  ActorLoss loss{policy.value, std::move(policy.gradient), {}, std::move(policy.metrics)};
  loss.metrics["actor/pg_loss"] = policy.value;
  if (!batch.entropy.empty()) {
    const double entropy = weighted_sum(weights, batch.entropy);
    loss.metrics["actor/entropy_loss"] = entropy;
    loss.value -= options.entropy_coeff * entropy;
    loss.entropy_gradient = weights;
    for (double& x : loss.entropy_gradient) x *= -options.entropy_coeff;
  }
  if (!options.use_kl_loss) return loss;

  TESSERA_CHECK(batch.ref_log_prob.size() == weights.size());
  double kl_loss = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    const ValueAndSlope kl =
        kl_penalty(options.kl_loss_type, batch.log_prob[i], batch.ref_log_prob[i]);
    kl_loss += weights[i] * kl.value;
    loss.log_prob_gradient[i] += options.kl_loss_coef * weights[i] * kl.slope;
  }
  loss.value += options.kl_loss_coef * kl_loss;
  loss.metrics["actor/kl_loss"] = kl_loss;
  loss.metrics["actor/kl_coef"] = options.kl_loss_coef;
  return loss;
}

Loss value_loss(const Rows& rows, View values, View old_values, View returns,
                double cliprange_value, const Aggregation& aggregation) {
  const Array weights = aggregation_weights(rows, aggregation);
  TESSERA_CHECK(values.size() == weights.size() && old_values.size() == weights.size() &&
                returns.size() == weights.size());
  Loss loss{.gradient = Array(weights.size(), 0.0)};
  Array clipped(weights.size(), 0.0);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!rows.valid(static_cast<std::int64_t>(i))) continue;
    const double bounded =
        std::clamp(values[i], old_values[i] - cliprange_value, old_values[i] + cliprange_value);
    const double error = values[i] - returns[i], bounded_error = bounded - returns[i];
    const bool use_bounded = bounded_error * bounded_error > error * error;
    clipped[i] = use_bounded ? 1 : 0;
    const double used = use_bounded ? bounded_error : error;
    loss.value += 0.5 * weights[i] * used * used;
    loss.gradient[i] = use_bounded ? 0 : weights[i] * used;  // bounded: constant in the value
  }
  loss.metrics["critic/vf_clipfrac"] = masked_mean(rows, clipped);
  return loss;
}

}  // namespace tessera
