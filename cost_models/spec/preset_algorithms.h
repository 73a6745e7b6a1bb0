// The algorithms whose calls are known (preset_dataflow); the other name, "custom", is of a
// workload that lists its own.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace tessera {

inline constexpr std::array<std::string_view, 2> kPresetAlgorithms{"ppo", "grpo"};

inline bool is_preset_algorithm(std::string_view name) {
  return std::ranges::find(kPresetAlgorithms, name) != kPresetAlgorithms.end();
}

}  // namespace tessera
