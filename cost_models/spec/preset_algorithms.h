// The algorithms whose calls are known (preset_dataflow), and what their bypass mode leaves out;
// the other name, "custom", is of a workload that lists its own.
//
// Pure.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "cost_models/spec/workload.h"

namespace tessera {

inline constexpr std::array<std::string_view, 2> kPresetAlgorithms{"ppo", "grpo"};

inline bool is_preset_algorithm(std::string_view name) {
  return std::ranges::find(kPresetAlgorithms, name) != kPresetAlgorithms.end();
}

/// The same calls in bypass mode (verl's algorithm.rollout_correction.bypass_mode): the old
/// log-probs are those that generation drew with.
Dataflow bypassing(Dataflow calls);

/// False of bypass mode: nothing but generation says what the old log-probs are.
bool computes_old_log_probs(const Dataflow& calls);

}  // namespace tessera
