// GPG (Chu et al. 2025, arXiv:2504.02546): -A log_prob, the plain policy gradient.
#include "executor/losses/token_losses.h"

namespace tessera {
namespace {

TokenLoss gpg(const TokenInput& token, const PolicyLossOptions&) {
  return {.value = -token.advantage * token.log_prob, .slope = -token.advantage};
}

}  // namespace

constinit const PolicyLoss kGpgLoss{
    .name = "gpg",
    .compute = token_wise<gpg, Reported{.kl = false, .clipped = false, .clipped_lower = false}>};

}  // namespace tessera
