// PF-PPO's buffer (Shen et al. 2024, arXiv:2409.06957): the sequences of a step are drawn anew,
// with replacement and in proportion to weights of their scores, before the updates.
//
// Plain values, fp64. Source: verl 0.9.1, core_algos.compute_pf_ppo_reweight_data.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/rl/rows.h"

namespace tessera {

enum class PfPpoReweight : std::uint8_t { pow, max_min, max_random };

/// verl's `algorithm.use_pf_ppo` and `algorithm.pf_ppo`.
struct PfPpo {
  bool enable = false;
  PfPpoReweight reweight_method = PfPpoReweight::pow;
  double weight_pow = 2.0;
};

/// |score|^pow; 1 for the best and the worst and 0 for others; or 0.4 for the best and 0.1 for
/// others; each + 1e-8.
Array pf_ppo_weights(View scores, const PfPpo& options);

/// One row for each number in [0, 1): rows in proportion to their weights.
std::vector<std::int64_t> drawn_rows(View weights, View uniforms);

}  // namespace tessera
