// Generation on one rank of the rollout role: requests over a cache of keys and values in pages.
//
// Collective over the tensor-parallel group; replicas generate without talking to one another, but
// for those that share experts, which end together. The cache's memory exists only during a call,
// behind the same addresses in each: what was captured serves the next. Owned by one rank's worker.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "executor/rollout/order_cost.h"
#include "executor/rollout/request_queue.h"
#include "executor/weights/parallel_ops.h"
#include "executor/weights/weights.h"

namespace tessera {

struct Rollout {
  std::vector<Sequence> sequences;  // in the order (prompt, sample)
  RolloutCounts counts;
  std::int64_t kv_cache_bytes = 0;  // on this rank
  /// What the fixed order costs, of the first generation that measures it.
  std::optional<OrderCost> order_cost;
};

class RolloutEngine {
 public:
  /// Keeps references: `weights` and `groups` outlive it. Allocates nothing yet.
  /// In the fixed order what a sample says and its log-probs have the same bits in any batch.
  /// Throws as require_fixed_order.
  RolloutEngine(const Weights& weights, const ParallelGroups& groups,
                SumOrder order = SumOrder::fastest);
  ~RolloutEngine();

  /// Generates the replica's share `prompts` (prompts_of_replica with groups.dp_size and
  /// groups.dp_rank), which enter in this order. The cache has the memory of cache_tokens, or of
  /// max_sequences of the longest texts; a text alone always fits. At the end the tensor-parallel
  /// ranks compare digests of what they drew; throws Error{internal} when they differ.
  Rollout generate(std::int64_t step, std::span<const TokenPrompt> prompts,
                   const RolloutOptions& options, const AfterPass& after_pass = {});

 private:
  struct Cache;

  Cache& cache_for(std::span<const TokenPrompt> prompts, const RolloutOptions& options);

  const Weights& weights_;
  const ParallelGroups& groups_;
  SumOrder order_;
  bool cost_known_ = false;
  std::unique_ptr<Cache> cache_;
};

}  // namespace tessera
