// GSPO (Zheng et al. 2025, arXiv:2507.18071): one ratio per sequence, its gradient spread over the
// tokens.
#include "executor/losses/token_losses.h"

namespace tessera {
namespace {

TokenLoss gspo(const TokenInput& token, const PolicyLossOptions& options) {
  const double ratio = std::exp(std::min(token.row_difference, 10.0));
  const double slope = token.row_difference <= 10 ? ratio : 0;
  TokenLoss loss = clipped_surrogate(token.advantage, ratio, slope, clip_of(options));
  loss.kl = -token.difference;
  return loss;
}

}  // namespace

constinit const PolicyLoss kGspo{.name = "gspo", .compute = token_wise<gspo, Reported{}>};

}  // namespace tessera
