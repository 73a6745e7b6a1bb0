// Lists of names for help texts and `tessera list`, from the planner's own tables.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cost_models/spec/workload.h"

namespace tessera {

/// "a, b, c"
std::string joined(std::span<const std::string> names);
/// The same of roles.
std::string names_of(std::span<const Role> roles);

/// What `--engine` takes: every engine whose abilities are known, and "any".
std::string engine_choices();

/// What follows the options of `tessera plan --help`: roles, fields, how presets are listed.
std::string planning_names();

}  // namespace tessera
