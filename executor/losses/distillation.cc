#include "executor/losses/distillation.h"

#include <algorithm>
#include <cmath>

#include "cost_models/documents/check.h"

namespace tessera {
namespace {

/// The estimate of every valid token, clamped, with its slope in log_prob.
struct Divergences {
  Array value, slope, magnitude;  // |value| before the clamp
};
Divergences divergences(const PolicyBatch& batch, const DistillationOptions& options) {
  const std::size_t n = batch.log_prob.size();
  Divergences all{Array(n, 0.0), Array(n, 0.0), Array(n, 0.0)};
  for (std::size_t i = 0; i < n; ++i) {
    if (!batch.rows.valid(static_cast<std::int64_t>(i))) continue;
    const ValueAndSlope kl =
        kl_penalty(options.loss_mode, batch.log_prob[i], batch.ref_log_prob[i]);
    const double most = options.loss_max_clamp.value_or(std::abs(kl.value));
    all.magnitude[i] = std::abs(kl.value);
    all.value[i] = std::clamp(kl.value, -most, most);
    all.slope[i] = std::abs(kl.value) <= most ? kl.slope : 0;
  }
  return all;
}

Loss as_advantage(const PolicyBatch& batch, Array divergence, const DistillationOptions& options,
                  const Aggregation& aggregation) {
  for (double& x : divergence) x = -x;
  PolicyBatch rewarded = batch;
  rewarded.advantages = divergence;
  Loss loss = options.policy.loss->compute(rewarded, options.policy, aggregation);
  Metrics renamed;
  for (const auto& [name, value] : loss.metrics) {
    renamed["distillation/" + name.substr(name.find('/') + 1)] = value;
  }
  loss.metrics = renamed;
  return loss;
}

}  // namespace

Loss distillation_loss(const PolicyBatch& batch, const DistillationOptions& options,
                       const Aggregation& aggregation) {
  TESSERA_CHECK(batch.ref_log_prob.size() == batch.log_prob.size());
  Divergences token = divergences(batch, options);
  const double magnitude = masked_mean(batch.rows, token.magnitude);
  Loss loss;
  if (options.use_policy_gradient) {
    loss = as_advantage(batch, std::move(token.value), options, aggregation);
  } else {
    const Array weights = aggregation_weights(batch.rows, aggregation);
    loss.value = weighted_sum(weights, token.value);
    loss.gradient = weights;
    for (std::size_t i = 0; i < weights.size(); ++i) loss.gradient[i] *= token.slope[i];
  }
  loss.metrics["distillation/loss"] = loss.value;
  loss.metrics["distillation/abs_loss"] = magnitude;
  return loss;
}

TopkDivergence forward_kl_topk(View student_log_prob, View teacher_log_prob,
                               const TopkClamps& clamps) {
  TESSERA_CHECK(student_log_prob.size() == teacher_log_prob.size());
  TopkDivergence result{.slope = Array(student_log_prob.size(), 0.0)};
  for (std::size_t i = 0; i < student_log_prob.size(); ++i) {
    result.student_mass += std::exp(student_log_prob[i]);
    result.teacher_mass += std::exp(teacher_log_prob[i]);
    double student = student_log_prob[i], teacher = teacher_log_prob[i];
    bool moves = true;
    if (clamps.log_prob_min) {
      moves = student >= *clamps.log_prob_min;
      student = std::max(student, *clamps.log_prob_min);
      teacher = std::max(teacher, *clamps.log_prob_min);
    }
    result.before_clamps += std::exp(teacher) * (teacher - student);
    if (moves) result.slope[i] = -std::exp(teacher);
  }
  const double most = clamps.loss_max.value_or(std::max(result.before_clamps, 0.0));
  result.value = std::clamp(result.before_clamps, 0.0, most);
  if (result.value != result.before_clamps)
    std::fill(result.slope.begin(), result.slope.end(), 0.0);
  return result;
}

}  // namespace tessera
