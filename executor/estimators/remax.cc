// ReMax (Li et al. 2024, arXiv:2310.10505): rewards to go minus the score of the greedy answer to
// the same prompt.
#include "cost_models/documents/check.h"
#include "executor/estimators/groups.h"

namespace tessera {
namespace {

Advantages remax(const EstimatorInput& input, const AdvantageOptions&) {
  TESSERA_CHECK(static_cast<std::int64_t>(input.greedy_scores.size()) == input.rows.count());
  const Array baseline = spread(input.rows, input.greedy_scores);
  Advantages result{.returns = rewards_to_go(input.rows, input.rewards)};
  result.advantages = result.returns;
  for (std::size_t i = 0; i < baseline.size(); ++i) result.advantages[i] -= baseline[i];
  return result;
}

}  // namespace

constinit const Estimator kRemax{.name = "remax", .reads_greedy_scores = true, .compute = remax};

}  // namespace tessera
