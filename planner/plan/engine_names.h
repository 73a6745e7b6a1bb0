// Whom a plan may be for. Who prices or runs a plan takes its rules from this name.
#pragma once

#include <array>
#include <string_view>

namespace tessera {

/// The engines of planner/engines, and "any": the whole space that the cost models price.
inline constexpr std::array<std::string_view, 7> kPlanEngines{
    "any", "megatron", "sglang", "tessera", "verl", "verl-megatron", "vllm"};

}  // namespace tessera
