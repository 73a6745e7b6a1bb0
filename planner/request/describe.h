// Layouts, placements and solutions as words: what every line that names one says.
//
// Pure functions.
#pragma once

#include <string>
#include <vector>

#include "cost_models/spec/cluster_spec.h"
#include "planner/request/candidate.h"
#include "planner/request/solution.h"

namespace tessera {

struct Plan;
struct RolePlan;

/// "actor+reference | critic"; one block of all roles is "colocated". The
/// rollout is named only where it has a block of its own.
std::string describe(const Placement& placement);

/// "tp2 pp2 dp1 zero1 recompute=full offload=all", for a rollout "tp2 dp2 unmap": what every line
/// that describes a layout says.
std::string describe_layout(const Candidate& candidate);
std::string describe_layout(const Plan& plan, const RolePlan& role);
/// "actor tp2 pp2 dp1 zero1, rollout tp2 dp2" of a solution, and of the plan made of it.
std::string describe(const Solution& solution);
std::string describe_layouts(const Plan& plan);
/// The words for --fix that ask for a solution: every layout, its batches and the placement.
std::vector<std::string> settings_of(const Solution& solution);

/// "colocated", "actor+reference | critic".
std::string describe_placement(const Plan& plan);

/// " on H100-SXM-80GB | H20-96GB": the GPU types of the blocks; empty where there is one type.
std::string describe_types(const ClusterSpec& cluster, const Solution& solution);

}  // namespace tessera
