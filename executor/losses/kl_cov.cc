// KL-Cov (Cui et al. 2025, arXiv:2505.22617): -A r without any clip; the tokens whose advantage and
// log-probability vary together the most, a share of the valid ones at hand, pay a penalty on
// |log r| as well.
#include "executor/losses/token_losses.h"

namespace tessera {
namespace {

TokenLoss unclipped(const TokenInput& token, const PolicyLossOptions&) {
  const double value = -token.advantage * std::exp(token.difference);
  return {.value = value, .slope = value, .kl = std::abs(token.difference)};
}

/// Valid entries with the largest covariances; among equals the first.
std::vector<std::size_t> penalized(const PolicyBatch& batch, double ratio) {
  std::vector<std::size_t> valid;
  for (std::size_t i = 0; i < batch.log_prob.size(); ++i) {
    if (batch.rows.valid(static_cast<std::int64_t>(i))) valid.push_back(i);
  }
  const Array covariance = covariances(batch);
  std::stable_sort(valid.begin(), valid.end(),
                   [&](std::size_t a, std::size_t b) { return covariance[a] > covariance[b]; });
  const auto count = static_cast<std::size_t>(share_of_tokens(batch.rows, ratio));
  valid.resize(std::min(valid.size(), count));
  return valid;
}

Loss kl_cov(const PolicyBatch& batch, const PolicyLossOptions& options,
            const Aggregation& aggregation) {
  std::vector<TokenLoss> tokens = token_losses(batch, options, unclipped);
  for (const std::size_t i : penalized(batch, options.kl_cov_ratio)) {
    const double difference = batch.log_prob[i] - batch.old_log_prob[i];
    tokens[i].value += options.ppo_kl_coef * std::abs(difference);
    const double sign = difference > 0 ? 1 : (difference < 0 ? -1 : 0);
    tokens[i].slope += options.ppo_kl_coef * sign;
  }
  return aggregated(batch, tokens, aggregation, {.clipped = false, .clipped_lower = false});
}

constexpr std::array kOptions{
    PolicyLossOption{.key = "kl_cov_ratio", .above_zero = &PolicyLossOptions::kl_cov_ratio},
    PolicyLossOption{.key = "ppo_kl_coef", .number = &PolicyLossOptions::ppo_kl_coef}};

}  // namespace

constinit const PolicyLoss kKlCov{.name = "kl_cov", .options = kOptions, .compute = kl_cov};

}  // namespace tessera
