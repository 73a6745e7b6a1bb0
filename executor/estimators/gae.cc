// Generalised advantage estimation (Schulman et al. 2016) over valid tokens:
// delta_t = r_t + gamma V_next - V_t, A_t = delta_t + gamma lam A_next, returns = A + V, and then
// the advantages are whitened over the batch. Throws as masked_variance does.
#include "executor/estimators/estimators.h"

namespace tessera {
namespace {

Advantages gae(const EstimatorInput& input, const AdvantageOptions& options) {
  const Rows& rows = input.rows;
  const View rewards = input.rewards, values = input.values;
  Advantages result{Array(rewards.size(), 0.0), Array(rewards.size(), 0.0)};
  for (std::int64_t row = 0; row < rows.count(); ++row) {
    double next_value = 0, next_advantage = 0;
    for (std::int64_t i = rows.begin[row + 1] - 1; i >= rows.begin[row]; --i) {
      if (!rows.valid(i)) continue;
      const auto at = static_cast<std::size_t>(i);
      const double delta = rewards[at] + options.gamma * next_value - values[at];
      next_advantage = delta + options.gamma * options.lam * next_advantage;
      next_value = values[at];
      result.advantages[at] = next_advantage;
      result.returns[at] = next_advantage + values[at];
    }
  }
  result.advantages = masked_whiten(rows, result.advantages);
  return result;
}

constexpr std::array kOptions{EstimatorOption{.key = "gamma", .fraction = &AdvantageOptions::gamma},
                              EstimatorOption{.key = "lam", .fraction = &AdvantageOptions::lam}};

}  // namespace

constinit const Estimator kGae{
    .name = "gae", .reads_values = true, .options = kOptions, .compute = gae};

}  // namespace tessera
