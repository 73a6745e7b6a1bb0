// The limits of a plan: the phase that takes longest, the rank's memory, communication.
//
// Pure functions over the plan's own numbers; nothing is searched again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cost_models/memory.h"
#include "cost_models/spec/units.h"
#include "cost_models/spec/workload.h"
#include "planner/explain/reshard_limits.h"
#include "planner/explain/type_reasons.h"

namespace tessera {

struct Plan;

struct PlanLimits {
  Phase longest = Phase::gen;
  double longest_share = 0;        // of the step
  double communication_share = 0;  // exposed, of the step
  Seconds front_end;               // of the generation, for which its GPUs wait
  Role fullest_role = Role::actor;
  Phase fullest_phase = Phase::gen;  // in which that role's fullest rank holds most
  MemoryUse fullest;                 // of that role alone
  Bytes peak_bytes, limit_bytes;     // of all roles on the fullest rank
};

/// Memory against usable_memory (memory_limit.h). Precondition: the plan has a prediction.
PlanLimits limits_of(const Plan& plan, const Calibration& calibration);

/// The limits, the reshards against their bounds, the certificate and what else can be asked.
std::string explain(const Plan& plan, const Calibration& calibration,
                    const std::vector<ReshardLimit>& reshards = {});
/// For programs, with the reasons for the pools' GPU types where there are several.
std::string explain_json(const Plan& plan, const Calibration& calibration,
                         const std::vector<ReshardLimit>& reshards = {},
                         const std::vector<OnOtherType>& types = {});

}  // namespace tessera
