// Rounds of a reshard through stages: while one travels an earlier one is unpacked and the next one
// packed.
//
// A stage is memory of several equal parts that rounds use in turn. One thread; bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>

#include "executor/transfers/reshard_site.h"

namespace tessera {

/// A copy within a rank's memory; offsets from the start of its two ends.
struct StagedCopy {
  std::int64_t from = 0, to = 0, bytes = 0;
};

struct MergeLimits {
  std::int64_t merge_below = 0;  // what is smaller travels merged; kMergeAll = everything
  std::int64_t stage_bytes = 0;  // of all stages of a rank together
};

inline constexpr std::int64_t kMergeAll = std::numeric_limits<std::int64_t>::max();

/// The actions of a round; round k uses part k % (behind + 1) of every stage.
struct StagedRounds {
  std::size_t count = 0;
  /// Round k has arrived here when travel k + behind - 1 has ended on this rank's stream; 1 or 2.
  std::size_t behind = 1;
  /// Begins a travel on the producer's stream; those from `count` on, behind - 1 of them, carry
  /// nothing.
  std::function<void(std::size_t k)> post;
  std::function<void(std::size_t k, CopyBatch& batch)> pack, unpack;
  std::function<void(std::size_t k, CopyBatch& batch)> keep;  // what stays, at any time
};

/// Runs all rounds; sources are final. Returns when everything has arrived here.
void run_staged(const StagedRounds& rounds, BlockCopies& copies);

/// Appends the copies whose ends differ.
void append(CopyBatch& batch, std::span<const StagedCopy> list, const void* from, void* to);

/// Gives a site of host memory without copies its own, which it refers to; nullptr where it has
/// some. Device memory comes with its copies.
std::unique_ptr<BlockCopies> complete_copies(ReshardSite& site);

/// Memory of the site's kind, for stages and buffers.
std::unique_ptr<SharedBlock> new_block(const ReshardSite& site, std::int64_t bytes);

}  // namespace tessera
