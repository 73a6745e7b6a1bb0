// Layouts and plans against what an engine can execute.
//
// Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "cost_models/documents/problem_list.h"
#include "planner/engines/engine.h"

namespace tessera {

struct Plan;

/// Why the engine cannot run a role of this model in this layout (ranks aside); empty = it can.
/// `place` of each Problem is the field, "tp" or "stages".
Problems outside_capabilities(const Engine& engine, const ModelSpec& model, Role role,
                              const ParallelLayout& layout);

/// Appends a Problem where the engine has no such model; `place` is that of the model in `file`.
void refuse_model(const Engine& engine, const ModelSpec& model, const std::string& file,
                  const std::string& place, Problems& problems);

/// What in `plan` the engine (by default the plan's own) cannot do: one Problem per role and thing,
/// `place` is the plan's JSON pointer. Empty: it can execute the plan.
Problems outside_capabilities(const Plan& plan, const std::string& file = "plan",
                              std::string_view engine = {});

}  // namespace tessera
