// Fixed degrees of a role that the cluster, its model or its batch cannot be cut by.
//
// Pure. What is said is a necessary condition: a role of which nothing is said may still have no
// layout. Sequences are those of a step, or of a mini-batch where the role trains.
#pragma once

#include <cstdint>
#include <string>

#include "planner/engines/capabilities.h"
#include "planner/engines/engine.h"
#include "planner/request/request.h"

namespace tessera {

/// Chunks a rank that plans go up to.
inline constexpr int kMostVirtualStages = 8;

/// Sequences that a role's dp must divide: of a mini-batch for trained roles. For the rollout what
/// is dealt to replicas, of which each has some.
std::int64_t dealt_to_replicas(const Workload& workload, PromptDealing prompts, Role role);

/// The first thing that speaks against the role's fixed gpus, tp, pp, vpp and dp; empty = nothing
/// does.
std::string refused_degrees(const PlanRequest& request, const Capabilities& table, Role role);

}  // namespace tessera
