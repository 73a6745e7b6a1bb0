// The KL divergence to the reference policy: estimators, their gradients, the KL term in the reward
// and the controller of its coefficient.
//
// With D = log_prob - ref_log_prob per token (Schulman, "Approximating KL divergence", 2020):
// k1 = D, abs = |D|, k2 = D^2 / 2, k3 = exp(-D) + D - 1, k3 with D clamped to +-20 and its value to
// +-10. A trailing '+' (straight-through) keeps the value and takes k2's gradient. Source:
// verl 0.9.1, core_algos.kl_penalty, AdaptiveKLController; ray_trainer.apply_kl_penalty.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "executor/rl/rows.h"

namespace tessera {

enum class KlEstimator : std::uint8_t { k1, abs, k2, k3 };

struct KlPenalty {
  KlEstimator estimator = KlEstimator::k1;
  bool straight_through = false;
};
/// verl's names: kl or k1, abs, mse or k2, low_var_kl or k3, each with an optional '+'. ("full"
/// is documented there, but verl's code refuses it.)
std::optional<KlPenalty> kl_penalty_from(std::string_view name);

/// A value and its derivative with respect to log_prob.
struct ValueAndSlope {
  double value = 0, slope = 0;
};
ValueAndSlope kl_penalty(KlPenalty penalty, double log_prob, double ref_log_prob);

/// The coefficient of the KL in the reward. Fixed, or proportional control (Ziegler et al. 2019,
/// section 2.2). Checkpointed with the run: `coef` is its whole state.
struct KlController {
  bool adaptive = false;
  double coef = 0.001;
  double target_kl = 0.1;
  double horizon = 10000;

  /// Adapts to the KL measured over `sequences` sequences.
  void update(double current_kl, std::int64_t sequences);
};

struct PenalizedRewards {
  Array rewards;    // scores - coef x KL, per entry
  Metrics metrics;  // actor/reward_kl_penalty (mean over rows of row means), .._coeff (before use)
};
/// Subtracts the KL of the old policy to the reference on valid entries, then updates `controller`
/// once with rows.count() sequences.
PenalizedRewards subtract_kl(const Rows& rows, View scores, View old_log_prob, View ref_log_prob,
                             KlPenalty penalty, KlController& controller);

}  // namespace tessera
