// Clip-Cov (Cui et al. 2025, arXiv:2505.22617): PPO's clipped surrogate, of which some tokens whose
// advantage and log-probability vary together the most are left out, drawn at random.
//
// Candidates are valid tokens that the surrogate does not clip and whose covariance lies between
// two bounds; a share of all valid tokens of the batch at hand is drawn from them.
#include "cost_models/documents/check.h"
#include "executor/losses/token_losses.h"

namespace tessera {
namespace {

TokenLoss surrogate(const TokenInput& token, const PolicyLossOptions& options) {
  const double ratio = std::exp(token.difference);
  TokenLoss loss = clipped_surrogate(token.advantage, ratio, ratio, clip_of(options));
  loss.kl = -token.difference;
  return loss;
}

/// The candidates with the smallest draws.
std::vector<std::size_t> left_out(const PolicyBatch& batch, std::span<const TokenLoss> tokens,
                                  const PolicyLossOptions& options) {
  const Array covariance = covariances(batch);
  std::vector<std::size_t> candidates;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const bool between = covariance[i] > options.clip_cov_lb && covariance[i] < options.clip_cov_ub;
    if (between && !tokens[i].clipped && batch.rows.valid(static_cast<std::int64_t>(i))) {
      candidates.push_back(i);
    }
  }
  const auto count = static_cast<std::size_t>(share_of_tokens(batch.rows, options.clip_cov_ratio));
  if (candidates.size() <= count) return candidates;
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](std::size_t a, std::size_t b) { return batch.draws[a] < batch.draws[b]; });
  candidates.resize(count);
  return candidates;
}

Loss clip_cov(const PolicyBatch& batch, const PolicyLossOptions& options,
              const Aggregation& aggregation) {
  TESSERA_CHECK(batch.draws.size() == batch.log_prob.size());
  std::vector<TokenLoss> tokens = token_losses(batch, options, surrogate);
  const std::vector<std::size_t> dropped = left_out(batch, tokens, options);
  for (TokenLoss& token : tokens) token.clipped = false;
  for (const std::size_t i : dropped) tokens[i] = {.clipped = true, .kl = tokens[i].kl};
  return aggregated(batch, tokens, aggregation, {.clipped_lower = false});
}

constexpr std::array kOptions{
    PolicyLossOption{.key = "clip_cov_ratio", .above_zero = &PolicyLossOptions::clip_cov_ratio},
    PolicyLossOption{.key = "clip_cov_lb", .number = &PolicyLossOptions::clip_cov_lb},
    PolicyLossOption{.key = "clip_cov_ub", .number = &PolicyLossOptions::clip_cov_ub}};

}  // namespace

constinit const PolicyLoss kClipCov{
    .name = "clip_cov", .reads_draws = true, .options = kOptions, .compute = clip_cov};

}  // namespace tessera
