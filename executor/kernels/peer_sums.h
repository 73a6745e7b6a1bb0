// CUDA kernel of small sums over the GPUs of one host: every GPU reads the others' parts out of
// their memory.
//
// A plain function of device pointers, sizes and a stream (cudaStream_t); it enqueues and returns,
// allocates nothing and may be captured in a graph. The GPUs call it in the same order with the
// same sizes. The sum is made in fp32 in the order of the ranks and rounded once, so that all ranks
// have the same bits. No torch here; the reference is a loop in its test.
#pragma once

#include <cstdint>

#include "executor/kernels/kernels.h"

namespace tessera::kernels {

/// Blocks of every call: each meets the blocks of its number on the other GPUs, and no others.
constexpr int kPeerSumBlocks = 64;
constexpr int kMostSummedPeers = 8;

/// Memory of a group, zero at first, as one GPU of it sees it.
struct PeerSumMemory {
  int rank = 0, ranks = 1;
  /// Of each rank two regions of region_bytes, used in turn.
  void* regions[kMostSummedPeers] = {};
  std::int64_t region_bytes = 0;
  /// Of each rank kPeerSumBlocks numbers from every rank.
  std::uint32_t* arrivals[kMostSummedPeers] = {};
  std::uint32_t* calls = nullptr;                    // of this rank's blocks so far
  const volatile std::uint32_t* given_up = nullptr;  // not 0: nobody waits any more
};

/// x = the sum of the ranks' x; `count` elements, at most region_bytes.
void sum_over_peers(Real real, const PeerSumMemory& memory, void* x, std::int64_t count,
                    void* stream);

}  // namespace tessera::kernels
