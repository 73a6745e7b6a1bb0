// Pass@k advantages (Tang et al. 2025, arXiv:2503.19595): only the best row of a group has one, the
// distance to the second best, divided by the group's std + 1e-6 or not. A tie gives 0 to all.
#include <algorithm>

#include "cost_models/documents/problem.h"
#include "executor/estimators/groups.h"

namespace tessera {
namespace {

Advantages grpo_passk(const EstimatorInput& input, const AdvantageOptions& options) {
  const Array scores = scores_of(input.rows, input.rewards);
  Array advantages(scores.size(), 0.0);
  for (const Group& group : groups_of(input.rows, input.uid)) {
    if (group.size() < 2) {
      throw Error(ExitCode::check_failed, "grpo_passk needs at least two samples of a prompt");
    }
    Group best = group;
    std::partial_sort(best.begin(), best.begin() + 2, best.end(),
                      [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
    const double divisor =
        options.norm_adv_by_std_in_grpo ? group_deviation(scores, group) + 1e-6 : 1;
    advantages[best[0]] = (scores[best[0]] - scores[best[1]]) / divisor;
  }
  return outcome(input.rows, advantages);
}

constexpr std::array kOptions{EstimatorOption{.key = "norm_adv_by_std_in_grpo",
                                              .flag = &AdvantageOptions::norm_adv_by_std_in_grpo}};

}  // namespace

constinit const Estimator kGrpoPassk{
    .name = "grpo_passk", .least_group = 2, .options = kOptions, .compute = grpo_passk};

}  // namespace tessera
