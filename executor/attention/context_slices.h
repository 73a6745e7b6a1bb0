// Which tokens of a packed batch each rank of a context-parallel group holds.
//
// A ring cuts every sequence into 2 n parts by the split rule and gives rank r the parts r and
// 2 n - 1 - r, so that all ranks see equally many keys under the causal mask. Ulysses cuts the
// packed tokens, padded to a multiple of n, into n equal runs. Plain values without torch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cost_models/spec/split.h"

namespace tessera {

/// One rank of the group.
struct ContextSlice {
  int size = 1, rank = 0;
  bool ulysses = false;

  bool alone() const { return size == 1; }
  ContextSlice of(int other) const { return {size, other, ulysses}; }
};

/// Parts `rank` and 2 n - 1 - rank of a sequence of this length, for a ring; either may be empty.
struct ZigZag {
  Interval early, late;
};
ZigZag zig_zag(std::int64_t length, int size, int rank);

/// Intervals of the packed tokens that the rank holds, in order; none is empty. Precondition of
/// Ulysses: the lengths' sum is a multiple of the size.
std::vector<Interval> held_tokens(std::span<const std::int64_t> lengths, const ContextSlice& slice);

/// Tokens that pad a packed batch as a sequence of their own, and the rows that this rank then
/// computes: a multiple of `multiple` (sequence parallelism's tp), at least one.
struct ContextRows {
  std::int64_t padding = 0, rows = 0;
};
ContextRows context_rows(std::span<const std::int64_t> lengths, const ContextSlice& slice,
                         std::int64_t multiple);

}  // namespace tessera
