// Bypass mode: the rollout's log-probs stand for the old policy's. The policy that is trained is
// compared with them: what rejection rejects leaves the mask, and then PPO's surrogate, whose ratio
// already corrects for the difference, or REINFORCE times the importance weights is minimised.
// Source: verl 0.9.1, core_algos.compute_policy_loss_bypass_mode. Weights and masks carry no
// gradient.
#include <utility>

#include "executor/losses/token_losses.h"

namespace tessera {
namespace {

TokenLoss reinforce(const TokenInput& token, const PolicyLossOptions&) {
  return {.value = -token.advantage * token.log_prob,
          .slope = -token.advantage,
          .kl = -token.difference};
}

Loss bypass(const PolicyBatch& batch, const PolicyLossOptions& options,
            const Aggregation& aggregation) {
  Correction correction =
      correct_rollout(batch.rows, batch.log_prob, batch.old_log_prob, options.correction);
  Rows kept = batch.rows;
  kept.mask = std::move(correction.kept);
  PolicyBatch rest{.rows = kept,
                   .log_prob = batch.log_prob,
                   .old_log_prob = batch.old_log_prob,
                   .advantages = batch.advantages};
  Loss loss;
  if (options.bypass == BypassLoss::reinforce) {
    rest.rollout_is_weights = correction.weights;
    loss = token_wise<reinforce, Reported{.clipped = false, .clipped_lower = false}>(rest, options,
                                                                                     aggregation);
  } else {
    loss = kVanilla.compute(rest, options, aggregation);
  }
  loss.metrics.merge(correction.metrics);
  return loss;
}

}  // namespace

constinit const PolicyLoss kBypass{.name = "bypass_mode", .compute = bypass};

}  // namespace tessera
