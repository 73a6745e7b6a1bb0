// NCCL and CUDA variables for an exported job, each with its reason.
//
// Pure functions.
#pragma once

#include <vector>

#include "planner/interop/files/export_target.h"

namespace tessera {

struct EnvironmentVariable;
struct Plan;

/// Variables that a job of this target should have: the plan's that apply, and the target's own.
std::vector<EnvironmentVariable> environment_of(const Plan& plan, const ExportTarget& target);

}  // namespace tessera
