// A plan that Tessera's own executor is to run.
#pragma once

#include <filesystem>
#include <optional>

#include "planner/plan/plan.h"

namespace tessera {

/// The file's plan, with a Problem for everything in it that the executor cannot do and every model
/// whose config.json has changed since; nullopt where it is no plan.
std::optional<Plan> read_executable_plan(const std::filesystem::path& file, Problems& problems);

}  // namespace tessera
