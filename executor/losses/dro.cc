// DRO (Richemond et al. 2024): -A log_prob + beta/2 d^2, d the difference to the old log_prob. It
// clips nothing.
#include "executor/losses/token_losses.h"

namespace tessera {
namespace {

TokenLoss dro(const TokenInput& token, const PolicyLossOptions& options) {
  const double d = token.difference;
  return {.value = -token.advantage * token.log_prob + options.dro_beta / 2 * d * d,
          .slope = -token.advantage + options.dro_beta * d,
          .kl = -d};
}

constexpr std::array kOptions{
    PolicyLossOption{.key = "dro_beta", .above_zero = &PolicyLossOptions::dro_beta}};

}  // namespace

constinit const PolicyLoss kDro{
    .name = "dro",
    .options = kOptions,
    .compute = token_wise<dro, Reported{.clipped = false, .clipped_lower = false}>};

}  // namespace tessera
