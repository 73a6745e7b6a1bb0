// The answer of a search: a placement, the sizes of its blocks, a candidate for every role.
//
// Plain values and pure functions. Values of an objective are seconds, GPU seconds or GPUs; smaller
// is better.
#pragma once

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "planner/plan/phase_seconds.h"
#include "planner/plan/placement.h"
#include "planner/request/candidate.h"
#include "planner/request/objective.h"

namespace tessera {

struct Solution {
  Placement placement;
  std::vector<int> sizes, first_rank;  // by block
  std::vector<int> views;              // by block: Candidate::view of its roles
  std::map<Role, Candidate> choice;
  PhaseSeconds seconds{};  // of every scheduled phase
  double step_s = std::numeric_limits<double>::infinity();
  int policy_lag = 0;
  double billed_gpus = 0;  // GPUs by their price, in units of the cluster's mean price

  int gpus() const;  // of all blocks
  bool found() const { return !sizes.empty(); }
};

/// The cost by the prices of the solution's GPU types.
double value_of(Objective objective, const Solution& solution);

}  // namespace tessera
