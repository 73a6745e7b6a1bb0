// What a run file says of vLLM as the rollout's engine. Plain values.
#pragma once

#include <string>
#include <vector>

namespace tessera {

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
  bool sleeps = true;                 // gives its memory back between generations
  double start_timeout_s = 600;       // until a server is ready
  double request_timeout_s = 600;     // of any request, a prompt's samples among them
};

}  // namespace tessera
