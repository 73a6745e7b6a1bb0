// Seconds by chunk of an iteration, of one block of a placement or of all.
//
// Plain values; index = chunk (iteration.h), entries beyond the chunks are zero.
#pragma once

#include <array>
#include <cstddef>

#include "planner/pricing/iteration.h"
#include "planner/plan/phase_seconds.h"

namespace tessera {

using ChunkSeconds = std::array<double, kPhaseCount>;

inline void add(ChunkSeconds& sum, const ChunkSeconds& part) {
  for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += part[c];
}

/// The phases of the chunks of one block.
inline ChunkSeconds by_chunk(const Iteration& iteration, std::size_t block,
                             const PhaseSeconds& seconds) {
  ChunkSeconds sums{};
  for (std::size_t c = 0; c < iteration.chunks().size(); ++c) {
    const Chunk& chunk = iteration.chunks()[c];
    if (chunk.block != static_cast<int>(block)) continue;
    for (const Phase phase : chunk.phases) sums[c] += seconds[static_cast<std::size_t>(phase)];
  }
  return sums;
}

}  // namespace tessera
