// A batch as a trainer is given it: sequences of tokens, and a loss over their scores.
//
// Plain values without torch. Sequences are views of token ids that the caller keeps (for instance
// of executor/rl's Sequence); every rank of a role is given the same batch in the same order.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace tessera {

/// One prompt and its response; neither is empty.
struct TokenSequence {
  std::span<const std::int32_t> prompt, response;
  /// Experts that its first tokens are sent to, by token, layer with experts and choice; empty, and
  /// for the tokens after them: the router's own choice.
  std::span<const std::int16_t> routed_experts = {};

  std::int64_t tokens() const { return static_cast<std::int64_t>(prompt.size() + response.size()); }
};

/// One value per response token, by sequence in the batch's order.
using TokenValues = std::vector<std::vector<float>>;

struct LogProbs {
  TokenValues log_prob;  // of each response token
  /// Of the distribution that it was drawn from; each empty unless asked for.
  TokenValues entropy;
  TokenValues sum_pi_squared;  // of its squared probabilities
  /// Of every token of each sequence: the experts that it went to, as TokenSequence has them.
  std::vector<std::vector<std::int16_t>> routed_experts;
};

/// A micro-batch's part of the loss and its derivatives by what the model put out for each response
/// token. Parts of one mini-batch add up over micro-batches and are averaged over data-parallel
/// ranks (verl's `dp_size` scaling: the loss itself carries the factor).
struct LossGradient {
  double value = 0;
  std::vector<double> score_gradient;    // by log_prob, or by value
  std::vector<double> entropy_gradient;  // empty: the loss does not depend on it
  double weight = 0;                     // of this part in the means, usually its valid tokens
  std::map<std::string, double> sums;    // parts of the loss: added up like it
  std::map<std::string, double> means;   // weighted means over all parts
};

/// `sequences` are indices into the batch; the arrays hold their response tokens one sequence after
/// another. `scores` are log-probs, or values for a model with a value head; `entropy` is empty
/// unless asked for. Called on every rank of the last stage, with equal arguments on all ranks of a
/// tensor-parallel group, which must make equal results of them.
using LossFunction =
    std::function<LossGradient(std::span<const int> sequences, std::span<const double> scores,
                               std::span<const double> entropy)>;

struct UpdateResult {
  double loss = 0;                        // mean over data-parallel ranks
  double grad_norm = 0;                   // before clipping
  bool applied = true;                    // false: the norm was not finite and nothing changed
  std::map<std::string, double> metrics;  // sums and means of the loss function
};

}  // namespace tessera
