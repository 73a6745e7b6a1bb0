// What offloading copies between device and host.
//
// Pure.
#pragma once

#include "cost_models/spec/units.h"
#include "planner/pricing/role/role_layout.h"

namespace tessera {

/// What a phase of the role fetches from and returns to host memory in `steps` optimizer steps, at
/// the link's one-way rate.
Seconds offload_seconds(const RoleLayout& layout, const Candidate& candidate, bool training,
                        double steps);

/// Pages of an unmapped rollout come back before it generates.
Seconds mapping_seconds(const RoleLayout& layout, const Candidate& candidate);

}  // namespace tessera
