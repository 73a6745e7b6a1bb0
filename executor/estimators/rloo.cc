// Leave-one-out advantages (Ahmadian et al. 2024, arXiv:2402.14740): the score minus the mean of
// the group's other scores. A group of one keeps its score, or 0 in the vectorized form.
#include "executor/estimators/groups.h"

namespace tessera {
namespace {

Advantages leave_one_out(const EstimatorInput& input, bool keep_single) {
  const Array scores = scores_of(input.rows, input.rewards);
  Array advantages = scores;
  for (const Group& group : groups_of(input.rows, input.uid)) {
    const auto n = static_cast<double>(group.size());
    const double mean = group_mean(scores, group);
    for (const std::size_t row : group) {
      if (group.size() > 1) {
        advantages[row] = (scores[row] - mean) * n / (n - 1);
      } else if (!keep_single) {
        advantages[row] = 0;
      }
    }
  }
  return outcome(input.rows, advantages);
}

Advantages rloo(const EstimatorInput& input, const AdvantageOptions&) {
  return leave_one_out(input, true);
}
Advantages rloo_vectorized(const EstimatorInput& input, const AdvantageOptions&) {
  return leave_one_out(input, false);
}

}  // namespace

constinit const Estimator kRloo{.name = "rloo", .compute = rloo};
constinit const Estimator kRlooVectorized{.name = "rloo_vectorized", .compute = rloo_vectorized};

}  // namespace tessera
