// Losses that the actor and the critic minimise, with exact gradients for every token.
//
// Inputs are flat arrays over `rows` (rows.h), fp64. Gradients are of the returned loss and 0 where
// an entry is not valid. Metrics carry verl's names and are means over the valid tokens at hand.
// Source: verl 0.9.1, core_algos.compute_value_loss, workers/utils/losses.
#pragma once

#include "executor/losses/distillation.h"
#include "executor/losses/policy_losses.h"
#include "executor/rl/aggregate.h"
#include "executor/rl/kl.h"
#include "executor/rl/rows.h"

namespace tessera {

/// The loss of options.loss. Metrics: what it reports of actor/ppo_kl, actor/pg_clipfrac,
/// actor/pg_clipfrac_lower, and in bypass mode rollout_corr/*.
Loss policy_loss(const PolicyBatch& batch, const PolicyLossOptions& options,
                 const Aggregation& aggregation);

struct ActorOptions {
  PolicyLossOptions policy;
  double entropy_coeff = 0;
  bool use_kl_loss = false;
  double kl_loss_coef = 0.001;
  KlPenalty kl_loss_type{.estimator = KlEstimator::k3};
  DistillationOptions distillation;
};

struct ActorLoss {
  double value = 0;
  Array log_prob_gradient, entropy_gradient;  // the latter empty where no entropy was given
  Metrics metrics;  // policy_loss's and actor/pg_loss, entropy_loss, kl_loss, kl_coef
};

/// policy loss - entropy_coeff x entropy + kl_loss_coef x KL(log_prob, ref), each aggregated with
/// the same mode and counts. With distillation its loss is added, or stands alone.
ActorLoss actor_objective(const PolicyBatch& batch, const ActorOptions& options,
                          const Aggregation& aggregation);

/// 0.5 x aggregate of max((v - return)^2, (v clipped to old value +- range - return)^2). Metric:
/// critic/vf_clipfrac.
Loss value_loss(const Rows& rows, View values, View old_values, View returns,
                double cliprange_value, const Aggregation& aggregation);

}  // namespace tessera
