// What an engine can execute: the table that limits the search and that `run` checks plans against.
//
// Plain values. Tessera's own table follows executor/train (Trainer) and executor/model
// (CachedDecoder).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/memory.h"
#include "cost_models/spec/problem.h"
#include "planner/plan/plan.h"

namespace tessera {

struct Capabilities {
  std::string engine;
  std::vector<int> zero;             // stages of trained roles
  std::vector<Recompute> recompute;  // of trained roles
  int most_rollout_pp = 1;
  bool context_parallel = false, expert_parallel = false, virtual_stages = false;
  bool fully_sharded = false, sequence_parallel = false, offload = false, unmap = false;
  bool tp_must_divide_heads = false;  // what Tessera's split rule does not ask for
  std::vector<DType> params;
};

/// Engines whose table is known, sorted.
std::vector<std::string> engine_names();

/// nullopt and a Problem with did-you-mean for an unknown engine.
std::optional<Capabilities> capabilities_of(std::string_view engine, Problems& problems);

/// What in `plan` the engine of the plan cannot do: one Problem per role and thing, `place` is the
/// plan's JSON pointer. Empty: it can execute the plan.
Problems outside_capabilities(const Plan& plan, const std::string& file = "plan");

}  // namespace tessera
