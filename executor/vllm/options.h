// What a run file says of vLLM as the rollout's engine. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// How weights come to vLLM's workers: out of the trainer's memory, which they map, or as messages
/// of the training ranks, to GPUs that train nothing.
enum class WeightTransport : std::uint8_t { mapped, messages };
constexpr std::string_view name_of(WeightTransport transport) {
  return transport == WeightTransport::mapped ? "mapped" : "messages";
}

struct VllmOptions {
  /// Servers that run already, one a replica, as http://HOST:PORT; empty = the run starts them.
  std::vector<std::string> servers;
  /// How vLLM is called, before `serve MODEL ...`.
  std::vector<std::string> program = {"vllm"};
  std::vector<std::string> arguments;  // of `vllm serve`, behind those that the plan gives
  /// Of each GPU's memory, for vLLM's weights and keys and values.
  double gpu_memory_utilization = 0.5;
  bool enforce_eager = false;         // no CUDA graphs
  bool enable_prefix_caching = true;  // samples of a prompt share its keys and values
  WeightTransport transport = WeightTransport::mapped;
  bool sleeps = true;  // gives its memory back between generations
  /// Servers that a replica may start in the place of lost ones, in the whole run; of started ones
  /// whose workers map the weights.
  std::int64_t restarts = 2;
  double start_timeout_s = 600;    // until a server is ready
  double request_timeout_s = 600;  // of any request, which is for a prompt's samples
};

}  // namespace tessera
