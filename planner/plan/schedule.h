// The calls of one step in the order in which they run.
//
// Plain values.
#pragma once

#include <vector>

#include "cost_models/spec/workload.h"

namespace tessera {

/// One call in the order of execution; `after` names phases that must have ended.
struct ScheduledCall {
  Phase phase = Phase::gen;
  Role role = Role::actor;
  std::vector<Phase> after;
  bool operator==(const ScheduledCall&) const = default;
};

/// The workload's calls in an order that its dataflow allows, each after those that make its
/// inputs, with a reshard before the responses are generated; as if all roles shared their ranks.
std::vector<ScheduledCall> default_schedule(const Workload& workload);

/// True when nothing else in the step waits for its gen, so that the rollout runs beside the
/// training of the step before (search/iteration.h: policy_lag 1).
bool is_one_step_off(const std::vector<ScheduledCall>& schedule);

}  // namespace tessera
