#include "executor/losses/losses.h"

#include <algorithm>
#include <utility>

#include "cost_models/documents/check.h"

namespace tessera {
namespace {

void check_sizes(const PolicyBatch& batch) {
  const auto n = static_cast<std::size_t>(batch.rows.entries());
  TESSERA_CHECK(batch.log_prob.size() == n && batch.old_log_prob.size() == n &&
                batch.advantages.size() == n);
  for (const View optional :
       {batch.rollout_is_weights, batch.ref_log_prob, batch.entropy, batch.draws}) {
    TESSERA_CHECK(optional.empty() || optional.size() == n);
  }
}

void subtract_entropy(View weights, View entropy, double coefficient, ActorLoss& loss) {
  const double bonus = weighted_sum(weights, entropy);
  loss.metrics["actor/entropy_loss"] = bonus;
  loss.value -= coefficient * bonus;
  loss.entropy_gradient.assign(weights.begin(), weights.end());
  for (double& x : loss.entropy_gradient) x *= -coefficient;
}

void add_kl(const PolicyBatch& batch, const ActorOptions& options, View weights, ActorLoss& loss) {
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
}

void add_distillation(const PolicyBatch& batch, const DistillationOptions& options,
                      const Aggregation& aggregation, ActorLoss& loss) {
  if (!options.use_task_rewards) {
    loss.value = 0;
    for (Array* gradient : {&loss.log_prob_gradient, &loss.entropy_gradient}) {
      std::fill(gradient->begin(), gradient->end(), 0.0);
    }
  }
  const double coefficient = options.use_task_rewards ? options.distillation_loss_coef : 1;
  Loss distilled = distillation_loss(batch, options, aggregation);
  loss.value += coefficient * distilled.value;
  for (std::size_t i = 0; i < distilled.gradient.size(); ++i) {
    loss.log_prob_gradient[i] += coefficient * distilled.gradient[i];
  }
  loss.metrics.merge(distilled.metrics);
}

}  // namespace

Loss policy_loss(const PolicyBatch& batch, const PolicyLossOptions& options,
                 const Aggregation& aggregation) {
  check_sizes(batch);
  return options.loss->compute(batch, options, aggregation);
}

ActorLoss actor_objective(const PolicyBatch& batch, const ActorOptions& options,
                          const Aggregation& aggregation) {
  Loss policy = policy_loss(batch, options.policy, aggregation);
  const Array weights = aggregation_weights(batch.rows, aggregation);
  ActorLoss loss{policy.value, std::move(policy.gradient), {}, std::move(policy.metrics)};
  loss.metrics["actor/pg_loss"] = policy.value;
  if (!batch.entropy.empty()) {
    subtract_entropy(weights, batch.entropy, options.entropy_coeff, loss);
  }
  if (options.use_kl_loss) add_kl(batch, options, weights, loss);
  if (options.distillation.enabled) {
    add_distillation(batch, options.distillation, aggregation, loss);
  }
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
