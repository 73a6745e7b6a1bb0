// The rounds of a reshard: one per bucket, with everything compiled that can be before it runs.
//
// Used by WeightReshard. In a direct round sources and landings are the memories themselves. In a
// buffered one (casts on the wire) sources are packed into an exported buffer, and land in a second
// buffer unless the wire's type is the destination's. Offsets in bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "executor/transfers/reshard_site.h"

namespace tessera {

/// A cast between one place and another, in elements.
struct BufferCast {
  std::int64_t from = 0, to = 0, elements = 0;
};

struct ReshardRound {
  ReshardPlan plan;         // the bucket's transfers
  std::vector<Pull> pulls;  // reads of peers' memory, and of this rank's for what stays
  /// Ranges of this rank by transfer that leaves it or stays, and where each that arrives or
  /// stays lands; by transfer, empty for those of others. For checksums.
  std::vector<std::vector<ByteRange>> outgoing, landing;
  std::vector<BufferCast> pack, unpack;  // buffered only
};

struct ReshardRounds {
  std::vector<ReshardRound> rounds;
  bool buffered = false, unpacks = false;
  std::int64_t out_bytes = 0, in_bytes = 0;  // of one of two halves of the buffers; equal on all
};

ReshardRounds direct_rounds(const PlacedReshard& plan, int rank, int ranks,
                            std::int64_t bucket_bytes);

/// Rounds that end at the same fractions of what each pair of ranks exchanges (cut_in_proportion).
ReshardRounds proportional_rounds(const PlacedReshard& plan, int rank, int ranks,
                                  std::span<const double> ends, std::span<const int> order = {});

/// Rounds for a reshard beside the producer, which writes the tensors in `order`: all sources have
/// their part of each round, and the first and last rounds are short, so that copies begin early
/// and little is left when the producer ends. `bucket_bytes` bounds what a rank sends or receives
/// in a round, but for rounding to rows; 0 = no bound.
ReshardRounds overlapped_rounds(const PlacedReshard& plan, int rank, int ranks,
                                std::int64_t bucket_bytes, std::span<const int> order);

/// This rank's messages of the transfers (by index) that `wanted` selects; what stays are copies.
ByteSchedule messages_of(const ReshardRound& round, int rank,
                         const std::function<bool(int transfer)>& wanted);

ReshardRounds buffered_rounds(const PlacedReshard& plan, int rank, int ranks, DType wire,
                              std::int64_t bucket_bytes);

}  // namespace tessera
