// The certificate of a reshard: that every rank of the rollout holds the trainer's weights.
//
// The slices that ranks must hold are cut into blocks along the lines between the trainer's shards,
// so that each block lies whole on every rank that trains it. The rank that owns a block digests
// what it trains; one sum over all ranks brings 8 bytes a block to everybody, and each rank
// compares them with digests of what its rollout holds, and of what it trains where it is a
// replica. Nothing is gathered, and neither the bytes' way nor the transfers of the reshard are
// trusted: where a slice belongs comes from the layout algebra alone. Plain values made once from
// metadata; counts are elements and bytes; ranks are those of the run. No torch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "cost_models/layout/reshard_plan.h"
#include "executor/arena/arena_layout.h"
#include "executor/arena/memory_ops.h"
#include "executor/comm/communicator.h"

namespace tessera {

struct CertificateBlock {
  int tensor = 0;
  Box box;
  int owner = 0;  // the lowest rank that trains it
};

struct WeightCertificate {
  std::vector<std::string> names;  // of the tensors
  std::vector<std::vector<std::int64_t>> shapes;
  std::vector<CertificateBlock> blocks;  // equal on every rank
  std::vector<int> trained, needed;      // blocks that this rank trains; that its rollout must hold
  int rank = 0;
};

/// Blocks have at most `largest` elements, or one index of their tensor's outer dim. Throws Error
/// (internal) where the sources do not cover a destination.
WeightCertificate make_certificate(std::span<const ShardedTensor> tensors, int rank,
                                   std::int64_t largest = std::int64_t{1} << 20);

/// A rank's weights for one part that it plays; no `places` = it plays none.
struct HeldWeights {
  const ArenaLayout* places = nullptr;
  const void* memory = nullptr;
};

/// A slice that is not what the owner of its block trains.
struct WeightDifference {
  int rank = 0, owner = 0, tensor = 0;
  bool trained = false;  // a replica of the trainer, and not the rollout
  /// From the first to the last differing element, in the rank's part of the tensor as it lies in
  /// memory; `part_bytes` has all of it.
  ByteRange bytes;
  std::int64_t part_bytes = 0;
  bool operator==(const WeightDifference&) const = default;
};

/// Of all ranks together, but for the seconds.
struct CertificateReport {
  std::int64_t compared = 0;   // bytes of rollouts that were
  std::int64_t shared = 0;     // bytes of them in which their rank trains: nothing to compare
  std::int64_t differing = 0;  // blocks
  std::vector<WeightDifference> differences;  // the first by rank, at most kMostDifferences
  double seconds = 0;
};
inline constexpr int kMostDifferences = 64;

/// Compares. Collective over `host`, whose memory is the host's. `element_bytes` of both parts are
/// equal. `wire`: the 16-bit type through which fp32 weights went to the rollout. A NaN that was
/// rounded on the way may count as a difference.
CertificateReport check_weights(const WeightCertificate& certificate, const HeldWeights& training,
                                const HeldWeights& rollout, std::optional<DType> wire,
                                MemoryOps& ops, Communicator& host);

/// "[Weights] 1.2 GB of rollouts are what is trained, 3.1 ms", or that one memory has both.
std::string to_string(const CertificateReport& report);

/// A problem for each difference: "rank 3, rollout:NAME: found bytes ...".
Problems problems_of(const WeightCertificate& certificate, const CertificateReport& report);

}  // namespace tessera
