// GPG (Chu et al. 2025, arXiv:2504.02546): (rows / rows whose score is not 0) (S - mean of the
// group) / f_norm. A group of one has mean 0.
#include <algorithm>

#include "executor/estimators/groups.h"

namespace tessera {
namespace {

Advantages gpg(const EstimatorInput& input, const AdvantageOptions& options) {
  const Array scores = scores_of(input.rows, input.rewards);
  const auto scored =
      std::count_if(scores.begin(), scores.end(), [](double score) { return score != 0; });
  const double factor = static_cast<double>(scores.size()) /
                        static_cast<double>(std::max<std::int64_t>(1, scored)) / options.f_norm;
  Array advantages = relative_scores(scores, groups_of(input.rows, input.uid), false);
  for (double& x : advantages) x *= factor;
  return outcome(input.rows, advantages);
}

constexpr std::array kOptions{
    EstimatorOption{.key = "f_norm", .above_zero = &AdvantageOptions::f_norm}};

}  // namespace

constinit const Estimator kGpg{.name = "gpg", .options = kOptions, .compute = gpg};

}  // namespace tessera
