// Schedules whose rollout runs beside the training of the step before.
#pragma once

#include <vector>

#include "planner/plan/schedule.h"

namespace tessera {

/// True when nothing else in the step waits for its gen (search/iteration.h: policy_lag 1).
bool is_one_step_off(const std::vector<ScheduledCall>& schedule);

}  // namespace tessera
