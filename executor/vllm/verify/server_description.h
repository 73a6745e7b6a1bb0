// What a running vLLM server with the package of integrations/vllm says of itself.
//
// Plain values, read from the replies of its workers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cost_models/spec/parallel_layout.h"
#include "executor/vllm/server.h"

namespace tessera {

struct ServedParameter {
  std::string type;  // our name of it, or torch's where we have none
  std::vector<std::int64_t> shape;
};

struct ServerDescription {
  ParallelLayout layout;  // tensor-parallel workers and pipeline stages
  /// By worker, by vLLM's names.
  std::vector<std::map<std::string, ServedParameter>> parameters;
  std::string config;  // of its model, as a config.json has it
};

/// Asks a server that runs and is awake. Throws Error(missing) where it cannot be reached, sleeps,
/// is of another version, or has no package, with how to start it.
ServerDescription describe_server(VllmServer& server, double timeout_s);

}  // namespace tessera
