// The losses of actor and critic as the trainer wants them: one micro-batch at a time, with the
// counts of the whole mini-batch.
//
// Torch-free. The returned functions keep a view of `batch`, which must outlive them.
#pragma once

#include <span>

#include "executor/batching/batch.h"
#include "executor/losses/losses.h"

namespace tessera {

/// The token and sequence counts of one mini-batch over all `dp_size` replicas. Rejected tokens
/// count, as verl's trainer counts before it rejects.
Aggregation mini_batch_counts(std::span<const Sequence> batch, const Aggregation& options,
                              int dp_size);

/// What random choices of a loss depend on beside the token that they concern.
struct LossDraws {
  std::uint64_t seed = 0;
  std::int64_t step = 0;
};

/// Needs old_log_prob and advantages, and ref_log_prob with a KL loss or distillation. Weights of
/// rollout correction enter where the sequences have them.
LossFunction actor_loss_function(std::span<const Sequence> batch, const ActorOptions& options,
                                 const Aggregation& counts, const LossDraws& draws = {});

/// Needs values and returns.
LossFunction critic_loss_function(std::span<const Sequence> batch, double cliprange_value,
                                  const Aggregation& counts);

}  // namespace tessera
