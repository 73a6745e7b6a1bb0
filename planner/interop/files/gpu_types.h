// The GPU types of a plan's ranks, in words for whoever starts them.
//
// Pure functions.
#pragma once

#include <set>
#include <string>

#include "cost_models/spec/cluster_spec.h"

namespace tessera {

struct Plan;

/// "nodes 0-3 (ranks 0-31) H100-SXM-80GB, nodes 4-7 ...".
std::string nodes_text(const ClusterSpec& cluster);

/// Names of the types on which the plan's roles lie.
std::set<std::string> types_of(const Plan& plan);

}  // namespace tessera
