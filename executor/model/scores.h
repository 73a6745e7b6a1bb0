// Scores that the last stage makes of hidden states: log-probabilities and entropies, a vocabulary
// being cut over tensor-parallel ranks; logits; token values.
//
// Row t of `hidden` predicts targets[t]. Outputs are fp32 [tokens] and equal on every rank.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>

#include "executor/comm/communicator.h"
#include "executor/weights/parallel_ops.h"
#include "executor/weights/weights.h"

namespace tessera {

struct TokenScores {
  torch::Tensor log_prob;  // of targets under softmax(logits / temperature)
  /// Of that distribution; each undefined unless asked for.
  torch::Tensor entropy;
  torch::Tensor sum_pi_squared;  // of its probabilities, without gradient
};

struct ScoreOptions {
  double temperature = 1.0;
  bool entropy = true;
  /// Rows of logits that exist at a time; beyond that the backward pass computes them again.
  std::int64_t chunk_rows = 4096;
  bool sum_pi_squared = false;  // computes the logits a second time
  /// Fixed: without gradient, and the log-probs are those with which the rollout draws
  /// (rl/sampling.h).
  SumOrder order = SumOrder::fastest;
};

/// The vocabulary projection of this rank: lm_head, or the embedding where they are tied.
/// Precondition: last stage of a language model.
const torch::Tensor& head_weight(const Weights& weights);

/// Differentiable in `hidden` and `head` ([vocab.size(), hidden]) through log_prob and entropy. The
/// hidden gradient is whole on every rank. Collective over `tp`.
TokenScores score_tokens(const torch::Tensor& hidden, const torch::Tensor& head, Interval vocab,
                         const torch::Tensor& targets, Communicator* tp,
                         const ScoreOptions& options = {});
TokenScores score_tokens(const Weights& weights, const ParallelGroups& groups,
                         const torch::Tensor& hidden, const torch::Tensor& targets,
                         const ScoreOptions& options = {});

/// This rank's columns (vocab_range) of the logits, fp32 [tokens, columns]; without gradient.
torch::Tensor own_logits(const Weights& weights, const torch::Tensor& hidden, SumOrder order);
/// Whole logits, fp32 [tokens, vocabulary], on every rank; without gradient. Collective over tp.
torch::Tensor full_logits(const Weights& weights, const ParallelGroups& groups,
                          const torch::Tensor& hidden, SumOrder order = SumOrder::fastest);

/// One value per token, fp32; differentiable. Precondition: last stage of a model with a value
/// head.
torch::Tensor token_values(const Weights& weights, const torch::Tensor& hidden);

}  // namespace tessera
