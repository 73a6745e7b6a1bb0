// On-policy distillation: the divergence of the trained policy from a teacher's on the trained
// policy's own responses.
//
// Either an estimate from the log-probs of the sampled tokens, or the forward KL over the teacher's
// k most likely tokens. Plain values and pure functions, fp64. Source: verl 0.9.1,
// trainer/distillation/losses.py, trainer/distillation/fsdp/losses.py.
#pragma once

#include <optional>
#include <span>

#include "executor/losses/policy_losses.h"
#include "executor/rl/kl.h"

namespace tessera {

/// verl's `distillation` and `distillation.distillation_loss`.
struct DistillationOptions {
  bool enabled = false;
  KlPenalty loss_mode{.estimator = KlEstimator::k3};
  bool use_task_rewards = true;       // the policy loss of the rewards stays beside it
  double distillation_loss_coef = 1;  // with use_task_rewards
  std::optional<double> loss_max_clamp;
  bool use_policy_gradient = false;  // the negative divergence is an advantage
  PolicyLossOptions policy;          // vanilla; its clip ratios, with use_policy_gradient
};

/// The aggregated divergence of batch.log_prob from batch.ref_log_prob, the teacher's. Metrics:
/// distillation/loss, distillation/abs_loss and, with use_policy_gradient, the policy loss's.
Loss distillation_loss(const PolicyBatch& batch, const DistillationOptions& options,
                       const Aggregation& aggregation);

/// Clamps of the forward KL; unset = none.
struct TopkClamps {
  std::optional<double> log_prob_min, loss_max;
};

/// Of one token: sum over the teacher's k most likely tokens of p_t (log p_t - log p_s).
struct TopkDivergence {
  double before_clamps = 0;                   // of the sum; log-probs are clamped already
  double value = 0;                           // within [0, loss_max]
  Array slope;                                // of `value`, by each of the student's log-probs
  double student_mass = 0, teacher_mass = 0;  // of probability, before any clamp
};
TopkDivergence forward_kl_topk(View student_log_prob, View teacher_log_prob,
                               const TopkClamps& clamps);

}  // namespace tessera
