// Fixed settings that an engine cannot run, and which engine could.
//
// Pure. Asked before the search, so that "nothing fits" never stands for "this engine has none".
#pragma once

#include <string>
#include <vector>

#include "planner/engines/capabilities.h"
#include "planner/request/request.h"

namespace tessera {

struct EngineLimit {
  Role role = Role::actor;
  Field field = Field::tp;
  std::string setting;               // "actor.recompute=full"
  std::string limit;                 // what the engine has: "none", "at most 1"
  std::vector<std::string> engines;  // that have it, "any" last
};

/// One limit per fixed setting of the request beyond the engine's table, in the settings' order.
std::vector<EngineLimit> engine_limits(const PlanRequest& request, const Capabilities& table);

/// "actor.recompute=full is beyond engine 'tessera', which has none; plan with --engine megatron or
/// any".
std::string describe(const EngineLimit& limit, const std::string& engine);

}  // namespace tessera
