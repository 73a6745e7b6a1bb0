// The table of policy losses: `actor.policy_loss.loss_mode`.
//
// A policy loss is a file of this folder and a row of kPolicyLosses; what run.yaml may say follows
// from the rows. Inputs are flat arrays over `rows` (rows.h), fp64. Plain values and pure
// functions. Source: verl 0.9.1, trainer/ppo/core_algos.compute_policy_loss_*.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "executor/correction/rollout_correction.h"
#include "executor/rl/aggregate.h"
#include "executor/rl/rows.h"

namespace tessera {

struct PolicyLossOptions;

/// One mini- or micro-batch for the actor. Optional arrays may be empty.
struct PolicyBatch {
  const Rows& rows;
  View log_prob, old_log_prob, advantages;
  View rollout_is_weights = {};  // multiply the token losses, not the metrics
  View ref_log_prob = {};        // for the KL loss and distillation
  View entropy = {};             // for the entropy bonus
  View draws = {};               // numbers in [0, 1), one per entry, where the loss reads them
};

struct Loss {
  double value = 0;
  Array gradient;  // with respect to log_prob (policy) or values (critic)
  Metrics metrics;
};

/// A number in `actor.policy_loss` that a loss reads.
struct PolicyLossOption {
  std::string_view key;
  double PolicyLossOptions::*above_zero = nullptr;  // a number above 0, or
  double PolicyLossOptions::*number = nullptr;      // any number
};

struct PolicyLoss {
  std::string_view name;     // verl's
  bool reads_draws = false;  // chooses tokens at random
  std::span<const PolicyLossOption> options;
  /// The loss with its exact gradient; metrics are means over the valid tokens at hand.
  Loss (*compute)(const PolicyBatch& batch, const PolicyLossOptions& options,
                  const Aggregation& aggregation) = nullptr;
};

extern const PolicyLoss kVanilla;          // vanilla.cc
extern const PolicyLoss kGspo;             // gspo.cc
extern const PolicyLoss kGeoMean;          // geo_mean.cc
extern const PolicyLoss kClipCov;          // clip_cov.cc
extern const PolicyLoss kKlCov;            // kl_cov.cc
extern const PolicyLoss kCispo;            // cispo.cc
extern const PolicyLoss kSapo;             // sapo.cc
extern const PolicyLoss kDppoTv, kDppoKl;  // dppo.cc
extern const PolicyLoss kDro;              // dro.cc
extern const PolicyLoss kGpgLoss;          // gpg.cc
extern const PolicyLoss kBypass;           // bypass.cc

inline constexpr std::array kPolicyLosses{&kVanilla, &kGspo,  &kGeoMean, &kClipCov,
                                          &kKlCov,   &kCispo, &kSapo,    &kDppoTv,
                                          &kDppoKl,  &kDro,   &kGpgLoss, &kBypass};

inline std::string_view name_of(const PolicyLoss* loss) { return loss->name; }

/// What bypass_mode minimises once it has rejected what it rejects.
enum class BypassLoss : std::uint8_t { ppo_clip, reinforce };

struct PolicyLossOptions {
  const PolicyLoss* loss = kPolicyLosses.front();  // a row
  double clip_ratio = 0.2;
  /// The bounds really used; unset = clip_ratio. As both default to 0.2, clip_ratio alone changes
  /// nothing.
  std::optional<double> clip_ratio_low = 0.2, clip_ratio_high = 0.2;
  double clip_ratio_c = 3.0;  // dual clip, where the advantage is negative; dppo's truncation
  double dro_beta = 0;        // dro only; > 0 there
  double clip_cov_ratio = 0.0002, clip_cov_lb = 1.0, clip_cov_ub = 5.0;
  double kl_cov_ratio = 0.0002, ppo_kl_coef = 0.1;
  double tau_pos = 1.0, tau_neg = 1.05;  // sapo
  RolloutCorrection correction;          // bypass_mode: of the policy that is trained
  BypassLoss bypass = BypassLoss::ppo_clip;
};

}  // namespace tessera
