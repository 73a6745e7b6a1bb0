// Fixed degrees of a role that the cluster, its model or its batch cannot be cut by.
//
// Pure. What is said is a necessary condition: a role of which nothing is said may still have no
// layout. Sequences are those of a step, or of a mini-batch where the role trains.
#pragma once

#include <cstdint>
#include <string>

#include "cost_models/layer_shape.h"
#include "planner/engines/capabilities.h"
#include "planner/engines/engine.h"
#include "planner/request/request.h"

namespace tessera {

/// Chunks a rank that plans go up to.
inline constexpr int kMostVirtualStages = 8;

/// Sequences that a role's dp must divide: of a mini-batch for trained roles. For the rollout what
/// is dealt to replicas, of which each has some.
std::int64_t dealt_to_replicas(const Workload& workload, PromptDealing prompts, Role role);

/// What degrees cut: the last layer with experts, or of a model without any the last layer.
LayerShape layer_to_cut(const ModelSpec& model);

/// The first thing that speaks against the role's fixed gpus, tp, pp, vpp and dp; empty = nothing
/// does.
std::string refused_degrees(const PlanRequest& request, const Capabilities& table, Role role);

}  // namespace tessera
