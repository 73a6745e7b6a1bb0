// Which degrees of context parallelism a search tries where none is fixed.
//
// Pure. Degrees count ranks, batches sequences.
#pragma once

#include <cstdint>

#include "cost_models/spec/workload.h"

namespace tessera {

/// True for degrees that are always tried: powers of two that leave every rank at least 2 Ki tokens
/// of the longest sequence.
bool tries_context(const Workload& workload, std::int64_t cp);

/// A way to cut a block into groups that work on one sequence, and replicas of them.
struct ContextSplit {
  int gpus = 1, tp = 1, cp = 1, dp = 1;  // the block's, and what they are cut into
  std::int64_t batch = 1;                // that the engine deals to replicas in equal parts
  std::int64_t deepest = 1;              // stages that a pipeline has at most
  bool alone = false;                    // the engine cuts a model in no other way
};

/// True where the degree is always tried, the engine has no other way, or the replicas cannot be
/// more. A factor of cp that data parallelism can take instead does the same products in whole
/// sequences and exchanges no keys and values; by induction a split that is left out has one with
/// fewer such factors that is tried, as cp 1 is. It is a rule and no proof: parts of sequences also
/// fill a deep pipeline sooner, even out lengths that spread and leave more room. That gained
/// nothing in 13 of 15 random problems, 0.1 % in two, and 0.8 % of a 70B's step on 1,024 GPUs; to
/// try all splits takes five times as many candidates on 8 GPUs and eight times as long on 1,024.
/// Degrees that are no power of two are tried on at most 64 GPUs, powers of two also where replicas
/// of one sequence with the deepest pipeline do not occupy the block.
bool tries_split(const Workload& workload, const ContextSplit& split);

}  // namespace tessera
