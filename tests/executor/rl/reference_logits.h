// Scores of a label by a row of logits, in fp64 on the host: the reference for the executor's
// vocabulary-parallel kernels. Log-sum-exp is taken about the largest logit.
#pragma once

#include <cstdint>
#include <span>

namespace tessera {

struct LogitStatistics {
  double log_prob = 0;        // log softmax at the label
  double entropy = 0;         // -sum p log p
  double sum_pi_squared = 0;  // sum p^2
};

/// Precondition: 0 <= label < logits.size().
LogitStatistics logit_statistics(std::span<const double> logits, std::int64_t label);

/// Adds to `gradient` (one entry per logit) the derivative of
/// log_prob_slope x log_prob + entropy_slope x entropy: log_prob_slope (1[j = label] - p_j)
/// - entropy_slope p_j (log p_j + entropy).
void add_logit_gradient(std::span<const double> logits, std::int64_t label, double log_prob_slope,
                        double entropy_slope, std::span<double> gradient);

}  // namespace tessera
