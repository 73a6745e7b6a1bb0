// What ranks read from one another in a reshard, as the order of reads is made of it
// (cost_models/reshard/pull_steps.h).
//
// Pure; bytes.
#pragma once

#include <span>

#include "cost_models/layout/reshard_plan.h"
#include "cost_models/reshard/pull_steps.h"

namespace tessera {

/// What stays on its rank is not read.
PullTraffic traffic_of(const ReshardPlan& plan, std::span<const ShardedTensor> tensors, int ranks);

}  // namespace tessera
