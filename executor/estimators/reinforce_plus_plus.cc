// REINFORCE++ (Hu et al. 2025, arXiv:2501.03262): discounted rewards to go, whitened over the
// batch; or, with a baseline, the score minus the mean of its group, whitened over the tokens.
#include "executor/estimators/groups.h"

namespace tessera {
namespace {

Advantages reinforce_plus_plus(const EstimatorInput& input, const AdvantageOptions& options) {
  const Rows& rows = input.rows;
  Advantages result{.returns = Array(input.rewards.size(), 0.0)};
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    double next = 0;
    for (std::int64_t i = rows.begin[row + 1] - 1; i >= rows.begin[row]; --i) {
      if (!rows.valid(i)) continue;
      const auto at = static_cast<std::size_t>(i);
      next = input.rewards[at] + options.gamma * next;
      result.returns[at] = next;
    }
  }
  result.advantages = masked_whiten(rows, result.returns);
  zero_invalid(rows, result.advantages);
  return result;
}

Advantages with_baseline(const EstimatorInput& input, const AdvantageOptions&) {
  const Array scores = scores_of(input.rows, input.rewards);
  const std::vector<Group> groups = groups_of(input.rows, input.uid);
  Advantages result;
  result.advantages =
      masked_whiten(input.rows, spread(input.rows, relative_scores(scores, groups, false)));
  zero_invalid(input.rows, result.advantages);
  result.returns = result.advantages;
  return result;
}

constexpr std::array kOptions{
    EstimatorOption{.key = "gamma", .fraction = &AdvantageOptions::gamma}};

}  // namespace

constinit const Estimator kReinforcePlusPlus{
    .name = "reinforce_plus_plus", .options = kOptions, .compute = reinforce_plus_plus};
constinit const Estimator kReinforcePlusPlusBaseline{.name = "reinforce_plus_plus_baseline",
                                                     .compute = with_baseline};

}  // namespace tessera
