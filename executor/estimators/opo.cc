// OPO (Hao et al. 2025, arXiv:2505.23585): the baseline of a group is the mean of its scores
// weighted by their numbers of valid tokens. A group of one keeps its score.
#include "executor/estimators/groups.h"

namespace tessera {
namespace {

Advantages opo(const EstimatorInput& input, const AdvantageOptions&) {
  const Array scores = scores_of(input.rows, input.rewards);
  Array advantages = scores;
  for (const Group& group : groups_of(input.rows, input.uid)) {
    if (group.size() == 1) continue;
    double weighted = 0, tokens = 0;
    for (const std::size_t row : group) {
      const auto length = static_cast<double>(input.rows.valid_in(static_cast<std::int64_t>(row)));
      weighted += length * scores[row];
      tokens += length;
    }
    if (tokens == 0) continue;  // nothing that an advantage could be spread over
    for (const std::size_t row : group) advantages[row] -= weighted / tokens;
  }
  return outcome(input.rows, advantages);
}

}  // namespace

constinit const Estimator kOpo{.name = "opo", .compute = opo};

}  // namespace tessera
