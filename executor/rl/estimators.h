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

#include "executor/rl/rows.h"

namespace tessera {

struct AdvantageOptions;

struct Advantages {
  Array advantages, returns;  // per entry; gae's are meaningless where an entry is not valid
};

struct EstimatorInput {
  const Rows& rows;
  View rewards;                      // per entry
  View values = {};                  // of the critic, per entry, where the estimator reads them
  std::span<const std::string> uid;  // of the group, per row
};

/// A key of `algorithm` that an estimator reads: a number from 0 to 1, or a flag.
struct EstimatorOption {
  std::string_view key;
  double AdvantageOptions::*fraction = nullptr;
  bool AdvantageOptions::*flag = nullptr;
};

struct Estimator {
  std::string_view name;      // verl's
  bool reads_values = false;  // needs a critic: a call `values` in the dataflow
  std::span<const EstimatorOption> options;
  Advantages (*compute)(const EstimatorInput& input, const AdvantageOptions& options) = nullptr;
};

extern const Estimator kGae;   // gae.cc
extern const Estimator kGrpo;  // grpo.cc

inline constexpr std::array kEstimators{&kGae, &kGrpo};

inline std::string_view name_of(const Estimator* estimator) { return estimator->name; }

struct AdvantageOptions {
  const Estimator* estimator = kEstimators.front();  // a row
  double gamma = 1.0, lam = 1.0;
  bool norm_adv_by_std_in_grpo = true;
};

}  // namespace tessera
