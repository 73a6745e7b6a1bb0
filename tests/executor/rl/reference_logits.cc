#include "tests/executor/rl/reference_logits.h"

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

double log_sum_exp(std::span<const double> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double x : logits) sum += std::exp(x - largest);
  return largest + std::log(sum);
}

}  // namespace

LogitStatistics logit_statistics(std::span<const double> logits, std::int64_t label) {
  const double normalizer = log_sum_exp(logits);
  LogitStatistics result{.log_prob = logits[static_cast<std::size_t>(label)] - normalizer};
  for (const double x : logits) {
    const double p = std::exp(x - normalizer);
    if (p > 0) result.entropy -= p * (x - normalizer);
    result.sum_pi_squared += p * p;
  }
  return result;
}

void add_logit_gradient(std::span<const double> logits, std::int64_t label, double log_prob_slope,
                        double entropy_slope, std::span<double> gradient) {
  const double normalizer = log_sum_exp(logits);
  const double entropy = logit_statistics(logits, label).entropy;
  for (std::size_t j = 0; j < logits.size(); ++j) {
    const double log_p = logits[j] - normalizer;
    const double p = std::exp(log_p);
    gradient[j] -= log_prob_slope * p;
    if (p > 0) gradient[j] -= entropy_slope * p * (log_p + entropy);
  }
  gradient[static_cast<std::size_t>(label)] += log_prob_slope;
}

}  // namespace tessera
