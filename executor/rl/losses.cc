#include "executor/rl/losses.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

constexpr std::array<std::pair<PolicyLossMode, std::string_view>, 4> kModes{{
    {PolicyLossMode::vanilla, "vanilla"},
    {PolicyLossMode::gspo, "gspo"},
    {PolicyLossMode::cispo, "cispo"},
    {PolicyLossMode::dro, "dro"},
}};

struct Clip {
  double low, high;  // bounds of the ratio
  double apply(double ratio) const { return std::clamp(ratio, low, high); }
  bool inside(double ratio) const { return ratio >= low && ratio <= high; }
};

Clip clip_of(const PolicyLossOptions& options) {
  return {1 - options.clip_ratio_low.value_or(options.clip_ratio),
          1 + options.clip_ratio_high.value_or(options.clip_ratio)};
}

/// What one token contributes: its loss, the loss's slope in log_prob, and the indicators whose
/// means are reported.
struct TokenLoss {
  double value = 0, slope = 0;
  bool clipped = false, clipped_lower = false;
  double kl = 0;
};

/// max(-A r, -A clip(r)) for a ratio whose derivative in log_prob is `ratio_slope`.
TokenLoss clipped_surrogate(double advantage, double ratio, double ratio_slope, const Clip& clip) {
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
ClampedRatio clamped_ratio(double difference) {
  const double log_ratio = std::clamp(difference, -20.0, 20.0);
  const double ratio = std::exp(log_ratio);
  return {log_ratio, ratio, log_ratio == difference ? ratio : 0};
}

/// PPO (Schulman et al. 2017) with the dual clip of Ye et al. 2020.
TokenLoss vanilla(double difference, double advantage, const PolicyLossOptions& options) {
  const ClampedRatio r = clamped_ratio(difference);
  TokenLoss token = clipped_surrogate(advantage, r.ratio, r.slope, clip_of(options));
  token.kl = -r.log_ratio;
  const double bound = -advantage * options.clip_ratio_c;
  if (advantage < 0 && token.value > bound) {
    token.value = bound;
    token.slope = 0;
    token.clipped_lower = true;
  }
  return token;
}

/// GSPO (Zheng et al. 2025): one ratio per sequence, its gradient spread over the tokens.
TokenLoss gspo(double difference, double mean_difference, double advantage,
               const PolicyLossOptions& options) {
  const double ratio = std::exp(std::min(mean_difference, 10.0));
  const double slope = mean_difference <= 10 ? ratio : 0;
  TokenLoss token = clipped_surrogate(advantage, ratio, slope, clip_of(options));
  token.kl = -difference;
  return token;
}

/// CISPO (MiniMax 2025): the clipped ratio weights log_prob and carries no gradient.
TokenLoss cispo(double log_prob, double difference, double advantage,
                const PolicyLossOptions& options) {
  const ClampedRatio r = clamped_ratio(difference);
  const Clip clip = clip_of(options);
  const double weight = -clip.apply(r.ratio) * advantage;
  return {.value = weight * log_prob,
          .slope = weight,
          .clipped = !clip.inside(r.ratio),
          .kl = -r.log_ratio};
}

/// DRO (Richemond et al. 2024): -A log_prob + beta/2 d^2.
TokenLoss dro(double log_prob, double difference, double advantage,
              const PolicyLossOptions& options) {
  return {.value = -advantage * log_prob + options.dro_beta / 2 * difference * difference,
          .slope = -advantage + options.dro_beta * difference,
          .kl = -difference};
}

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
      const double d = difference[i], a = batch.advantages[i], log_prob = batch.log_prob[i];
      switch (options.mode) {
        case PolicyLossMode::vanilla:
          tokens[i] = vanilla(d, a, options);
          break;
        case PolicyLossMode::gspo:
          tokens[i] = gspo(d, row_mean[row], a, options);
          break;
        case PolicyLossMode::cispo:
          tokens[i] = cispo(log_prob, d, a, options);
          break;
        case PolicyLossMode::dro:
          tokens[i] = dro(log_prob, d, a, options);
          break;
      }
    }
  }
  return tokens;
}

Metrics policy_metrics(const Rows& rows, std::span<const TokenLoss> tokens, PolicyLossMode mode) {
  Array clipped, lower, kl;
  for (const TokenLoss& token : tokens) {
    clipped.push_back(token.clipped ? 1 : 0);
    lower.push_back(token.clipped_lower ? 1 : 0);
    kl.push_back(token.kl);
  }
  Metrics metrics{{"actor/ppo_kl", masked_mean(rows, kl)}};
  if (mode == PolicyLossMode::dro) return metrics;  // it clips nothing
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

std::string_view name_of(PolicyLossMode mode) {
  for (const auto& [value, name] : kModes) {
    if (value == mode) return name;
  }
  return {};
}

std::optional<PolicyLossMode> policy_loss_mode_from(std::string_view name) {
  for (const auto& [value, known] : kModes) {
    if (known == name) return value;
  }
  return std::nullopt;
}

Loss policy_loss(const PolicyBatch& batch, const PolicyLossOptions& options,
                 const Aggregation& aggregation) {
  check_sizes(batch);
  const std::vector<TokenLoss> tokens = token_losses(batch, options);
  const Array weights = aggregation_weights(batch.rows, aggregation);
  Loss loss{.gradient = Array(tokens.size(), 0.0),
            .metrics = policy_metrics(batch.rows, tokens, options.mode)};
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
