// The elements of a box of a tensor where a rank holds them, as pieces that digests are taken of.
//
// Pure functions; boxes are in checkpoint coordinates, counts and places in elements.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cost_models/layout/box.h"
#include "executor/kernels/weight_digest.h"

namespace tessera {

/// A dense part of a tensor in memory: `outer_dim` outermost, the other dims in their order.
struct HeldPart {
  Box box;
  int outer_dim = 0;
  const void* data = nullptr;
  std::int64_t element_bytes = 2;
};

/// Where the digests of a tensor's elements begin, by its name in the checkpoint: FNV-1a, mixed.
std::uint64_t digest_seed(std::string_view name);

/// The pieces of `box` in the order of the part's memory. `shape`: of the whole tensor.
/// Precondition: the part holds the box.
std::vector<kernels::DigestPiece> slice_pieces(const HeldPart& part, const Box& box,
                                               std::span<const std::int64_t> shape,
                                               std::uint64_t seed);

/// Elements [range.lo, range.hi) of the pieces, counted through all of them.
std::vector<kernels::DigestPiece> cut_pieces(std::span<const kernels::DigestPiece> pieces,
                                             Interval range, std::int64_t element_bytes);

/// Place inside the part of element `element` of the box, both counted in the order of the memory.
std::int64_t place_in(const HeldPart& part, const Box& box, std::int64_t element);

}  // namespace tessera
