// A plan's reshards against the fastest that its cluster allows.
//
// Pure functions over a plan and a calibration. The bound counts bytes that travel directly from a
// holder (cost_models/reshard/reshard_bound.h). An engine that gathers whole tensors passes weights
// on from rank to rank where the rollout has GPUs of its own, which may be faster than that.
#pragma once

#include <string>
#include <vector>

#include "cost_models/reshard/reshard_bound.h"
#include "cost_models/spec/units.h"
#include "cost_models/spec/workload.h"

namespace tessera {

struct Plan;

struct ReshardLimit {
  Role from = Role::actor, to = Role::rollout;
  ReshardBound bound;
  Seconds predicted;
};

/// One limit for each reshard of the plan.
std::vector<ReshardLimit> reshard_limits(const Plan& plan, const Calibration& calibration);

/// "reshard actor -> rollout: 16.1 ms predicted, at least 15.2 ms (1.06x): ..."; one line each.
std::string describe(const std::vector<ReshardLimit>& limits);

}  // namespace tessera
