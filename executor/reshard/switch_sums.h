// Checksums of what travels in a switch, known at both ends.
//
// Used by WeightSwitch to find what changed and to verify what arrived. Indices are transfers of a
// round.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "executor/reshard/memory_ops.h"
#include "executor/reshard/switch_rounds.h"

namespace tessera {

/// Sums of the source's bytes, for the transfers that this rank sends, receives or keeps; 0 for
/// those of others.
using TransferSums = std::vector<std::uint64_t>;

/// Collective over `host`. `source` is this rank's memory that the round's outgoing ranges lie in.
TransferSums share_sums(const SwitchRound& round, const void* source, int rank, MemoryOps& ops,
                        Communicator& host);

/// Compares what landed with `sums`. Error (internal) names the tensor and both ranks.
void check_landed(const SwitchRound& round, const TransferSums& sums, const void* landed, int rank,
                  MemoryOps& ops, std::span<const ShardedTensor> tensors);

}  // namespace tessera
