// What a search says of the plan that it found: the proof, and the plans that lost to it.
//
// Plain values. Times in seconds; risks and probabilities from 0 to 1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cost_models/spec/units.h"

namespace tessera {

/// A plan that lost: the best of another placement, or of the same one with another layout.
struct RunnerUp {
  std::string placement;    // "colocated", "actor+reference | critic", ...
  std::string description;  // its layouts
  Seconds step_s;
  int gpus = 0;                       // 0 = the file does not say (plans of earlier versions)
  double billed_gpus = 0;             // by price, where GPU types differ in it; else 0
  std::vector<std::string> settings;  // what fixes it in another search; empty likewise
  bool used() const { return step_s > 0; }
  bool operator==(const RunnerUp&) const = default;
};

/// The best plan under a smaller risk: what more safety costs.
struct SaferPlan {
  double risk = 0;  // 0 = not worked out
  double fits = 0;  // the probability that it does
  RunnerUp plan;    // step_s 0: none holds so well
  bool used() const { return risk > 0; }
  bool operator==(const SaferPlan&) const = default;
};

struct Certificate {
  std::string objective;           // "step_s"
  double risk = 0;                 // of running out of memory that was accepted; 0 = not stated
  std::vector<std::string> fixed;  // as --fix reads it: the plan is the best of those with it
  RunnerUp better;  // of the search without it that the plan lost to; step_s 0 = none is known
  double value = 0, lower_bound = 0, gap = 0;
  std::int64_t evaluated = 0, pruned = 0;
  std::vector<RunnerUp> runner_up;  // ascending by the objective
  double margin = 0;  // relative model error that would flip the choice to one of these; 1 = none
  /// By how many standard deviations of their difference the nearest of these is worse, from the
  /// covariance of the constants; 0 = not known, or no difference.
  double margin_deviations = 0;
  SaferPlan safer;     // one step of safety further: at a tenth of the risk
  std::string digest;  // of the plan that the search certified (certified.h); empty = no search
  bool operator==(const Certificate&) const = default;
};

}  // namespace tessera
