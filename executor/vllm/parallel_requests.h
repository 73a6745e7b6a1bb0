// The prompts of a server as requests at the same time, each over a connection of its own.
//
// vLLM decides which samples run and which wait. Threads live for one call.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "executor/rollout/request_queue.h"
#include "executor/vllm/server.h"

namespace tessera {

/// Fills the answers of prompts that have none yet: the samples of a prompt, in their order. At the
/// first failure the server's process is stopped, so that the other requests end, and what failed
/// first is thrown: Error(missing) of the server, Error(check_failed) of a reply. What was answered
/// before stays.
void answer_in_parallel(VllmServer& server, std::int64_t step, std::span<const TokenPrompt> prompts,
                        const RolloutOptions& options, std::int64_t vocabulary, double timeout_s,
                        std::span<std::vector<Sequence>> answers);

}  // namespace tessera
