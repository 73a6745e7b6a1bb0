// Plans in place of one that failed: a plan that fits by what was measured, or on another cluster.
#pragma once

#include <filesystem>
#include <optional>
#include <ostream>
#include <span>

#include "planner/plan/plan.h"

namespace tessera {

/// Plans again under the limit that RUN/oom.json states, and says on `log` which settings change.
/// nullopt where there is no such limit, or nothing fits: told on `log`, too.
std::optional<Plan> plan_again(const Plan& failed, const std::filesystem::path& run,
                               std::ostream& log);

/// Plans again, with the objective of `failed` and nothing fixed, on its cluster without the GPUs
/// of the `lost` ranks (cluster_without); where nothing fits on all that is left, on fewer GPUs or
/// nodes. Says on `log` which settings change. nullopt where nothing fits at all: told, too.
std::optional<Plan> plan_without(const Plan& failed, std::span<const int> lost, std::ostream& log);

/// Moves all that an attempt left in the run's folder, but for its checkpoints and exported models,
/// into RUN/attempt-<number>. Error (io).
void keep_attempt(const std::filesystem::path& run, int number);

}  // namespace tessera
