#include "executor/preference/preference_loss.h"

#include <algorithm>
#include <cmath>

#include "cost_models/documents/check.h"

namespace tessera {
namespace {

/// log(1 + e^x) without overflow.
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

double sigmoid(double x) {
  const double e = std::exp(-std::abs(x));
  return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

}  // namespace

LossFunction PreferenceLoss::function(int replicas) const {
  return
      [gradient = gradient, scale = static_cast<double>(replicas)](
          std::span<const int> sequences, std::span<const double> scores, std::span<const double>) {
        TESSERA_CHECK(sequences.size() == scores.size());
        LossGradient part;
        for (const int s : sequences) {
          part.score_gradient.push_back(scale * gradient.at(static_cast<std::size_t>(s)));
        }
        return part;
      };
}

PreferenceLoss preference_loss(std::span<const float> scores, std::span<const double> margins,
                               double center_coefficient) {
  TESSERA_CHECK(!margins.empty() && scores.size() == 2 * margins.size());
  PreferenceLoss loss{.gradient = std::vector<double>(scores.size())};
  const double share = 1 / static_cast<double>(margins.size());
  for (std::size_t i = 0; i < margins.size(); ++i) {
    const double chosen = scores[2 * i], rejected = scores[2 * i + 1], sum = chosen + rejected;
    const double short_of = margins[i] - (chosen - rejected), slope = sigmoid(short_of);
    loss.value += share * (softplus(short_of) + center_coefficient * sum * sum);
    loss.gradient[2 * i] = share * (2 * center_coefficient * sum - slope);
    loss.gradient[2 * i + 1] = share * (2 * center_coefficient * sum + slope);
    loss.accuracy += chosen > rejected ? share : 0;
    loss.margin += share * (chosen - rejected);
  }
  return loss;
}

}  // namespace tessera
