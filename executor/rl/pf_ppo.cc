#include "executor/rl/pf_ppo.h"

#include <algorithm>
#include <cmath>

namespace tessera {

Array pf_ppo_weights(View scores, const PfPpo& options) {
  Array weights(scores.begin(), scores.end());
  if (scores.empty()) return weights;
  const auto [least, most] = std::minmax_element(scores.begin(), scores.end());
  for (double& x : weights) {
    switch (options.reweight_method) {
      case PfPpoReweight::pow:
        x = std::pow(std::abs(x), options.weight_pow);
        break;
      case PfPpoReweight::max_min:
        x = x == *most || x == *least ? 1 : 0;
        break;
      case PfPpoReweight::max_random:
        x = x == *most ? 0.4 : 0.1;
        break;
    }
    x += 1e-8;
  }
  return weights;
}

std::vector<std::int64_t> drawn_rows(View weights, View uniforms) {
  Array sums;
  double total = 0;
  for (const double weight : weights) sums.push_back(total += weight);
  std::vector<std::int64_t> rows;
  for (const double uniform : uniforms) {
    const auto at = std::upper_bound(sums.begin(), sums.end(), uniform * total);
    const auto row =
        std::min<std::ptrdiff_t>(at - sums.begin(), static_cast<std::ptrdiff_t>(sums.size()) - 1);
    rows.push_back(row);
  }
  return rows;
}

}  // namespace tessera
