// GDPO (arXiv:2601.05242): every component of the reward is made relative to its group as GRPO does
// it, the weighted sum is whitened over the batch. The components replace the rewards, so a KL in
// the reward does not enter.
#include "cost_models/documents/check.h"
#include "executor/estimators/groups.h"

namespace tessera {
namespace {

Advantages gdpo(const EstimatorInput& input, const AdvantageOptions& options) {
  const std::vector<double>& weights = options.gdpo_reward_weights;
  TESSERA_CHECK(!input.components.empty());
  TESSERA_CHECK(weights.empty() || weights.size() == input.components.size());
  const std::vector<Group> groups = groups_of(input.rows, input.uid);
  Array sums(static_cast<std::size_t>(input.rows.count()), 0.0);
  for (std::size_t key = 0; key < input.components.size(); ++key) {
    const Array relative =
        relative_scores(input.components[key], groups, options.norm_adv_by_std_in_grpo);
    const double weight = weights.empty() ? 1 : weights[key];
    for (std::size_t row = 0; row < sums.size(); ++row) sums[row] += weight * relative[row];
  }
  Advantages result;
  result.advantages = masked_whiten(input.rows, spread(input.rows, sums));
  zero_invalid(input.rows, result.advantages);
  result.returns = result.advantages;
  return result;
}

constexpr std::array kOptions{EstimatorOption{.key = "norm_adv_by_std_in_grpo",
                                              .flag = &AdvantageOptions::norm_adv_by_std_in_grpo}};

}  // namespace

constinit const Estimator kGdpo{
    .name = "gdpo", .reads_components = true, .options = kOptions, .compute = gdpo};

}  // namespace tessera
