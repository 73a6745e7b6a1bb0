// Advantages and returns from rewards: `algorithm.adv_estimator`.
//
// Computed once per step over the whole batch of all ranks (whitening and groups need it), fp64.
// Source: verl 0.9.1, trainer/ppo/core_algos.compute_*_advantage*.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "executor/rl/rows.h"

namespace tessera {

enum class AdvantageEstimator : std::uint8_t { gae, grpo };
std::string_view name_of(AdvantageEstimator estimator);

struct AdvantageOptions {
  AdvantageEstimator estimator = AdvantageEstimator::gae;
  double gamma = 1.0, lam = 1.0;        // gae
  bool norm_adv_by_std_in_grpo = true;  // grpo
};

struct Advantages {
  Array advantages, returns;  // per entry; gae's are meaningless where an entry is not valid
};

/// Generalised advantage estimation (Schulman et al. 2016) over valid tokens:
/// delta_t = r_t + gamma V_next - V_t, A_t = delta_t + gamma lam A_next, returns = A + V, and then
/// the advantages are whitened over the batch. Throws as masked_variance does.
Advantages gae(const Rows& rows, View rewards, View values, double gamma, double lam);

/// Group-relative advantages (Shao et al. 2024): the score S of a row is the sum of its whole
/// reward row, masked or not; A = (S - mean of the group) / (std of the group + 1e-6), std
/// unbiased, or S - mean. A group of one keeps mean 0 and std 1. `uid` has one entry per row.
/// Returns equal the advantages.
Advantages grpo(const Rows& rows, View rewards, std::span<const std::string> uid,
                bool normalize_by_std);

}  // namespace tessera
