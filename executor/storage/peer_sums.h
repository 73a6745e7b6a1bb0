// A group of one host's GPUs whose small sums take one kernel: each GPU reads the others' parts.
//
// What a decode step of tensor parallel ranks adds up is so small that latencies decide its time,
// and a kernel that meets its peers once has fewer than a ring. Larger sums, and all other
// operations, are the inner group's. Calls may be captured in graphs, on the stream given alone.
// One thread per object, as Communicator; abort() ends kernels that wait for a peer.
#pragma once

#include <cstddef>
#include <memory>

#include "executor/comm/communicator.h"

namespace tessera {

/// A sum of more bytes is left to the inner group: NCCL is as quick (h200x2-peer-sums.json).
constexpr std::size_t kMostPeerSumBytes = std::size_t{4} << 20;

/// `inner`, whose all_reduce sums bf16 and fp32 of up to kMostPeerSumBytes by peers' memory, in
/// fp32 in the order of the ranks. `host`: the same group on host memory, of which the result has
/// no need. Collective. `inner` itself where the ranks are on several hosts or too many, or nothing
/// was built to compute it. In tessera::peer_sums.
std::unique_ptr<Communicator> with_peer_sums(std::unique_ptr<Communicator> inner,
                                             Communicator& host, int device, void* stream);

}  // namespace tessera
