// The smallest single change to a request that nothing fits with which something does.
//
// Pure functions; each tries changes by searches of its own. An answer is a command in words ("use
// 4 nodes (32 GPUs)") and the change to the request; empty: none of those that are tried helps.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "planner/engines/capabilities.h"
#include "planner/explain/infeasible.h"
#include "planner/request/request.h"
#include "planner/space/engine_limits.h"

namespace tessera {

struct NearestFix {
  std::string words;
  RequestChange change;
};

/// The change without what it replaces: "rollout.tp=4" of "rollout.tp=4 instead of rollout.tp=1".
std::string brief(const std::string& words);

/// The first that helps of these: another value of a fixed setting, as practice tries them, one
/// setting left free, more nodes, more memory on every GPU.
NearestFix nearest_fix(const PlanRequest& request, const Capabilities& capabilities);

/// At most `most` changes of the request with which something fits, each alone, in the order of
/// nearest_fix: of every fixed setting the first value that helps, every setting whose absence
/// helps, more nodes.
std::vector<NearestFix> fixes_of(const PlanRequest& request, const Capabilities& capabilities,
                                 std::size_t most);

/// The settings beyond the engine left out, and whether anything fits then.
NearestFix fix_of_limits(const PlanRequest& request, const Capabilities& capabilities,
                         const std::vector<EngineLimit>& limits);

}  // namespace tessera
