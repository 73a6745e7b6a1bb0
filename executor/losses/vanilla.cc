// PPO's clipped surrogate (Schulman et al. 2017) with the dual clip of Ye et al. 2020.
#include "executor/losses/token_losses.h"

namespace tessera {
namespace {

TokenLoss vanilla(const TokenInput& token, const PolicyLossOptions& options) {
  const ClampedRatio r = clamped_ratio(token.difference);
  TokenLoss loss = clipped_surrogate(token.advantage, r.ratio, r.slope, clip_of(options));
  loss.kl = -r.log_ratio;
  const double bound = -token.advantage * options.clip_ratio_c;
  if (token.advantage < 0 && loss.value > bound) {
    loss.value = bound;
    loss.slope = 0;
    loss.clipped_lower = true;
  }
  return loss;
}

}  // namespace

constinit const PolicyLoss kVanilla{.name = "vanilla", .compute = token_wise<vanilla, Reported{}>};

}  // namespace tessera
