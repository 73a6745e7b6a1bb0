// Parts of a flat buffer for fused::adamw, whose weights are not packed as that buffer is.
//
// Plain data; offsets in elements.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/tensor/fused.h"

namespace tessera::fused {

/// `shift`: the weights of the chunk begin at chunk.offset + shift of theirs.
struct PlacedChunk {
  PlacedChunk(const Chunk& part, std::int64_t by = 0) : chunk(part), shift(by) {}
  Chunk chunk;
  std::int64_t shift = 0;
};

/// As chunk_table: on the device, cut to `largest` elements, 0 = the kernels' size. Beside copies
/// kernels of short chunks leave more of the memory's rate to them (benchmarks/results).
torch::Tensor placed_chunk_table(const std::vector<PlacedChunk>& chunks, torch::Device device,
                                 std::int64_t largest = 0);

}  // namespace tessera::fused
