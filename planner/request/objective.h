// The objectives that a search can minimise.
//
// Plain values; names are those of --objective.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/spec/units.h"

namespace tessera {

/// Tokens per second and GPU, and cost at one price per GPU hour, are
/// both best where the iteration takes the fewest GPU seconds; the fewest GPUs that fit come with
/// their fastest plan.
enum class Objective { step_time, tokens_per_gpu, cost, fewest_gpus };

/// "step_s", "tokens_per_s_per_gpu", "cost", "gpus".
std::string_view name_of(Objective objective);
std::optional<Objective> objective_from(std::string_view name);
std::vector<std::string> objective_names();

/// Smaller is better: step, GPU seconds, or GPUs (with the step as a tie-break below one GPU).
double value_of(Objective objective, Seconds step, int gpus);

}  // namespace tessera
