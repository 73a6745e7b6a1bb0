// Generation on one rank of the rollout role: continuous batching over the cached decoder.
//
// Collective over the tensor-parallel group; each replica generates its own prompts without talking
// to the others. The cache of keys and values exists only during the call.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "executor/rollout/continuous_batching.h"
#include "executor/weights/weights.h"

namespace tessera {

struct Rollout {
  std::vector<Sequence> sequences;  // in the order (prompt, sample)
  RolloutCounts counts;
  std::int64_t kv_cache_bytes = 0;  // on this rank
};

/// Generates the replica's share `prompts` (prompts_of_replica with groups.dp_size and
/// groups.dp_rank). At the end the tensor-parallel ranks compare digests of what they drew; throws
/// Error{internal} when they differ.
Rollout generate(const Weights& weights, const ParallelGroups& groups, std::int64_t step,
                 std::span<const TokenPrompt> prompts, const RolloutOptions& options);

}  // namespace tessera
