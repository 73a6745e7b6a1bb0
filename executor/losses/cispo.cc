// CISPO (MiniMax 2025, arXiv:2506.13585): the clipped ratio weights log_prob and carries no
// gradient.
#include "executor/losses/token_losses.h"

namespace tessera {
namespace {

TokenLoss cispo(const TokenInput& token, const PolicyLossOptions& options) {
  const ClampedRatio r = clamped_ratio(token.difference);
  const RatioClip clip = clip_of(options);
  const double weight = -clip.apply(r.ratio) * token.advantage;
  return {.value = weight * token.log_prob,
          .slope = weight,
          .clipped = !clip.inside(r.ratio),
          .kl = -r.log_ratio};
}

}  // namespace

constinit const PolicyLoss kCispo{.name = "cispo", .compute = token_wise<cispo, Reported{}>};

}  // namespace tessera
