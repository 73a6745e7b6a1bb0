// The fullest rank of a solution.
//
// Pure; bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/plan/schedule.h"
#include "planner/pricing/evaluate.h"
#include "planner/request/solution.h"

namespace tessera {

/// Bytes of the fullest rank over all phases, every rank with its own stages and the reserve of
/// context and libraries. `generating` prices the rollout.
std::int64_t peak_bytes(const std::vector<ScheduledCall>& schedule, const Solution& solution,
                        CostEvaluator& costs, CostEvaluator& generating);

}  // namespace tessera
