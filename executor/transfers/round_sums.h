// Checksums of what travels in a reshard, known at both ends.
//
// Used by WeightReshard to find what changed and to verify what arrived. Compiled once per round:
// ranges that several transfers read are summed once. Indices are transfers of the round.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "executor/arena/memory_ops.h"
#include "executor/transfers/reshard_rounds.h"

namespace tessera {

/// Sums of the source's bytes, for the transfers that this rank sends, receives or keeps; 0 for
/// those of others.
using TransferSums = std::vector<std::uint64_t>;

class RoundSums {
 public:
  /// Keeps a reference to `round`.
  RoundSums(const ReshardRound& round, int rank);

  /// Collective over `host`. `source` is this rank's memory that the round's outgoing ranges lie
  /// in.
  TransferSums share(const void* source, MemoryOps& ops, Communicator& host) const;

  /// Compares what landed with `sums`. Error (internal) names the tensor and both ranks.
  void check_landed(const TransferSums& sums, const void* landed, MemoryOps& ops,
                    std::span<const ShardedTensor> tensors) const;

 private:
  /// The distinct ranges of one end, and which of them each transfer has.
  struct End {
    std::vector<ByteRange> ranges;
    std::vector<int> transfers;        // those with ranges
    std::vector<std::vector<int>> of;  // indices of `ranges`, by position in `transfers`
  };
  static End end_of(const std::vector<std::vector<ByteRange>>& lists);
  static void sum(const End& end, const void* memory, MemoryOps& ops, TransferSums& sums);

  const ReshardRound& round_;
  int rank_;
  End out_, in_;
  std::map<int, std::vector<int>> to_, from_;  // transfers by peer
};

}  // namespace tessera
