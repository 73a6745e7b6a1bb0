// SAPO (arXiv:2511.20347): a sigmoid gate of the ratio in the place of a clip,
// -A (4 / tau) sigmoid(tau (r - 1)), with a temperature tau for advantages above 0 and another for
// the rest. Its aggregation is always seq-mean-token-mean.
#include "executor/losses/token_losses.h"

namespace tessera {
namespace {

TokenLoss sapo(const TokenInput& token, const PolicyLossOptions& options) {
  const ClampedRatio r = clamped_ratio(token.difference);
  const double tau = token.advantage > 0 ? options.tau_pos : options.tau_neg;
  const double gate = 1 / (1 + std::exp(-tau * (r.ratio - 1)));
  return {.value = -token.advantage * gate * 4 / tau,
          .slope = -token.advantage * 4 * gate * (1 - gate) * r.slope,
          .kl = -r.log_ratio};
}

Loss over_sequences(const PolicyBatch& batch, const PolicyLossOptions& options,
                    const Aggregation& aggregation) {
  Aggregation by_sequence = aggregation;
  by_sequence.mode = AggregationMode::seq_mean_token_mean;
  return token_wise<sapo, Reported{}>(batch, options, by_sequence);
}

}  // namespace

constinit const PolicyLoss kSapo{.name = "sapo", .compute = over_sequences};

}  // namespace tessera
