// What a run that ran out of memory can do: a plan that fits by what was measured.
#pragma once

#include <filesystem>
#include <optional>
#include <ostream>

#include "planner/plan/plan.h"

namespace tessera {

/// Plans again under the limit that RUN/oom.json states, and says on `log` which settings change.
/// nullopt where there is no such limit, or nothing fits: told on `log`, too.
std::optional<Plan> plan_again(const Plan& failed, const std::filesystem::path& run,
                               std::ostream& log);

/// Moves all that an attempt left in the run's folder, but for its checkpoints and exported models,
/// into RUN/attempt-<number>. Error (io).
void keep_attempt(const std::filesystem::path& run, int number);

}  // namespace tessera
