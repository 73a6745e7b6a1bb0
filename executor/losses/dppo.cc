// DPPO (arXiv:2602.04879): -A min(r, c) log_prob, the truncated ratio without gradient, for tokens
// whose divergence from the old policy is within bounds or shrinks. With p and q the token's
// probability now and then, the divergence is p - q (total variation) or the KL of the two-sided
// choice between the token and all others.
#include "executor/losses/token_losses.h"

namespace tessera {
namespace {

TokenLoss truncated(const TokenInput& token, const PolicyLossOptions& options, bool keep) {
  const ClampedRatio r = clamped_ratio(token.difference);
  const double weight = keep ? -token.advantage * std::min(r.ratio, options.clip_ratio_c) : 0;
  return {.value = weight * token.log_prob,
          .slope = weight,
          .clipped = !keep,
          .clipped_lower = keep && r.ratio > options.clip_ratio_c,
          .kl = -r.log_ratio};
}

TokenLoss by_variation(const TokenInput& token, const PolicyLossOptions& options) {
  const double grown = std::exp(token.log_prob) - std::exp(token.old_log_prob);
  return truncated(token, options,
                   token.advantage > 0 ? grown <= clip_high(options) : grown >= -clip_low(options));
}

TokenLoss by_divergence(const TokenInput& token, const PolicyLossOptions& options) {
  const double p = std::exp(token.log_prob), q = std::exp(token.old_log_prob);
  const double divergence = q * (token.old_log_prob - token.log_prob) +
                            (1 - q) * std::log((1 - q + 1e-8) / (1 - p + 1e-8));
  return truncated(token, options,
                   token.advantage > 0 ? divergence <= clip_high(options) || p <= q
                                       : divergence <= clip_low(options) || p >= q);
}

}  // namespace

constinit const PolicyLoss kDppoTv{.name = "dppo_tv",
                                   .compute = token_wise<by_variation, Reported{}>};
constinit const PolicyLoss kDppoKl{.name = "dppo_kl",
                                   .compute = token_wise<by_divergence, Reported{}>};

}  // namespace tessera
