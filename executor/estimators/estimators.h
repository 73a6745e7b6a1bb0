// The table of advantage estimators, advantages and returns from rewards:
// `algorithm.adv_estimator`.
//
// An estimator is a file of this folder and a row of kEstimators; what run.yaml may say follows
// from the rows. Computed once per step over the whole batch of all ranks (whitening and groups
// need it), fp64. Source: verl 0.9.1, trainer/ppo/core_algos.compute_*_advantage*.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/rl/rows.h"

namespace tessera {

struct AdvantageOptions;

struct Advantages {
  Array advantages, returns;  // per entry; gae's are meaningless where an entry is not valid
};

/// One of the outputs of an agent that answers several times in a session.
struct SessionOutput {
  std::string session;     // equal for the outputs of one session
  std::int64_t index = 0;  // the largest is the session's last output
};

struct EstimatorInput {
  const Rows& rows;
  View rewards;                           // per entry
  std::span<const std::string> uid = {};  // of the group, per row
  /// What only some estimators read, as their rows say:
  View values = {};                     // of the critic, per entry
  View old_log_prob = {};               // per entry
  View sum_pi_squared = {};             // of the old policy's probabilities, per entry
  View rollout_is_weights = {};         // per entry; may be empty
  View greedy_scores = {};              // of the greedy answer to the row's prompt, per row
  std::span<const Array> components{};  // scores per row, one array for each gdpo_reward_keys
  /// Per row; empty where every row is a session of its own. Read by grpo alone.
  std::span<const SessionOutput> outputs{};
};

/// A key of `algorithm` that an estimator reads.
struct EstimatorOption {
  std::string_view key;
  double AdvantageOptions::*fraction = nullptr;    // a number from 0 to 1, or
  double AdvantageOptions::*above_zero = nullptr;  // a number above 0, or
  bool AdvantageOptions::*flag = nullptr;          // a flag
};

struct Estimator {
  std::string_view name;              // verl's
  bool reads_values = false;          // needs a critic: a call `values` in the dataflow
  bool reads_sum_pi_squared = false;  // of the call `old_log_prob`
  bool reads_greedy_scores = false;   // each prompt is answered greedily as well
  bool reads_components = false;      // needs gdpo_reward_keys
  std::int64_t least_group = 1;       // samples per prompt
  std::span<const EstimatorOption> options;
  Advantages (*compute)(const EstimatorInput& input, const AdvantageOptions& options) = nullptr;
};

extern const Estimator kGae;                        // gae.cc
extern const Estimator kGrpo, kGrpoVectorized;      // grpo.cc
extern const Estimator kGrpoPassk;                  // grpo_passk.cc
extern const Estimator kGdpo;                       // gdpo.cc
extern const Estimator kRloo, kRlooVectorized;      // rloo.cc
extern const Estimator kOpo;                        // opo.cc
extern const Estimator kReinforcePlusPlus;          // reinforce_plus_plus.cc
extern const Estimator kReinforcePlusPlusBaseline;  // reinforce_plus_plus.cc
extern const Estimator kRemax;                      // remax.cc
extern const Estimator kGpg;                        // gpg.cc
extern const Estimator kOptimalTokenBaseline;       // optimal_token_baseline.cc
extern const Estimator kTirOptimalTokenBaseline;    // optimal_token_baseline.cc

inline constexpr std::array kEstimators{&kGae,
                                        &kGrpo,
                                        &kGrpoVectorized,
                                        &kGrpoPassk,
                                        &kGdpo,
                                        &kRloo,
                                        &kRlooVectorized,
                                        &kOpo,
                                        &kReinforcePlusPlus,
                                        &kReinforcePlusPlusBaseline,
                                        &kRemax,
                                        &kGpg,
                                        &kOptimalTokenBaseline,
                                        &kTirOptimalTokenBaseline};

inline std::string_view name_of(const Estimator* estimator) { return estimator->name; }

struct AdvantageOptions {
  const Estimator* estimator = kEstimators.front();  // a row
  double gamma = 1.0, lam = 1.0;
  bool norm_adv_by_std_in_grpo = true;
  double f_norm = 1.0;                        // gpg's divisor
  bool handle_zero_tail = true;               // of the optimal token baselines
  std::vector<std::string> gdpo_reward_keys;  // names of rewards
  std::vector<double> gdpo_reward_weights;    // one for each key; empty = ones
};

}  // namespace tessera
