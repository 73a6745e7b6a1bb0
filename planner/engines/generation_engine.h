// Who generates in a run of Tessera's own executor.
//
// Plain values.
#pragma once

#include <cstdint>
#include <string_view>

namespace tessera {

/// This program's own engine, or vLLM's servers.
enum class GenerationEngine : std::uint8_t { tessera, vllm };

/// As run.yaml says it.
constexpr std::string_view name_of(GenerationEngine engine) {
  return engine == GenerationEngine::vllm ? "vllm" : "tessera";
}

}  // namespace tessera
