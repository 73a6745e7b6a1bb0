// Who generates in a run of Tessera's own executor.
//
// Plain values.
#pragma once

#include <cstdint>
#include <string_view>

#include "cost_models/spec/enum_names.h"

namespace tessera {

/// This program's own engine, or vLLM's servers.
enum class GenerationEngine : std::uint8_t { tessera, vllm };

/// As run.yaml says it.
inline constexpr auto kGenerationEngines = enum_names<GenerationEngine>(
    {{GenerationEngine::tessera, "tessera"}, {GenerationEngine::vllm, "vllm"}});
constexpr std::string_view name_of(GenerationEngine engine) { return kGenerationEngines[engine]; }

}  // namespace tessera
