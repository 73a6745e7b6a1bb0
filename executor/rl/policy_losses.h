// The table of policy losses: `actor.policy_loss.loss_mode`.
//
// A policy loss is a file of this folder and a row of kPolicyLosses; what run.yaml may say follows
// from the rows. Plain values and pure functions, fp64. Source: verl 0.9.1,
// core_algos.compute_policy_loss_*.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

namespace tessera {

struct PolicyLossOptions;

/// One valid token.
struct TokenInput {
  double log_prob = 0;
  double difference = 0;      // log_prob - old_log_prob
  double row_difference = 0;  // its mean over the sequence
  double advantage = 0;
};

/// The contribution of one token: its loss, the loss's slope in log_prob, and the indicators whose
/// means are reported.
struct TokenLoss {
  double value = 0, slope = 0;
  bool clipped = false, clipped_lower = false;
  double kl = 0;
};

/// A number above 0 in `actor.policy_loss` that a loss needs.
struct PolicyLossOption {
  std::string_view key;
  double PolicyLossOptions::*above_zero = nullptr;
};

struct PolicyLoss {
  std::string_view name;  // verl's
  bool clips = true;      // the clipped shares are reported
  std::span<const PolicyLossOption> options;
  TokenLoss (*of_token)(const TokenInput& token, const PolicyLossOptions& options) = nullptr;
};

extern const PolicyLoss kVanilla;  // vanilla.cc
extern const PolicyLoss kGspo;     // gspo.cc
extern const PolicyLoss kCispo;    // cispo.cc
extern const PolicyLoss kDro;      // dro.cc

inline constexpr std::array kPolicyLosses{&kVanilla, &kGspo, &kCispo, &kDro};

inline std::string_view name_of(const PolicyLoss* loss) { return loss->name; }

struct PolicyLossOptions {
  const PolicyLoss* loss = kPolicyLosses.front();  // a row
  double clip_ratio = 0.2;
  /// The bounds really used; unset = clip_ratio. As both default to 0.2, clip_ratio alone changes
  /// nothing.
  std::optional<double> clip_ratio_low = 0.2, clip_ratio_high = 0.2;
  double clip_ratio_c = 3.0;  // dual clip, where the advantage is negative
  double dro_beta = 0;        // dro only; > 0 there
};

}  // namespace tessera
