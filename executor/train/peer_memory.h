// Memory of this rank that the other ranks of its host read, as a tensor (FSDP within a host).
//
// Every rank brings a block of its own length; all of them are mapped everywhere. Reading is copies
// on the current stream: on GPUs copy engines move the bytes. When the others' memory is final is
// up to the caller. One thread; sizes in elements.
#pragma once

#include <cstdint>
#include <memory>

#include "executor/comm/communicator.h"
#include "executor/model/torch.h"
#include "executor/storage/block_copies.h"
#include "executor/storage/peer_blocks.h"

namespace tessera {

struct PeerMemory {
  PeerBlocks blocks;
  /// [elements], zero at first; keeps the block alive by itself.
  torch::Tensor own;
};

/// Collective over `host`, a communicator on host memory. nullptr on all ranks unless all are on
/// one host.
std::unique_ptr<PeerMemory> make_peer_memory(Communicator& host, std::int64_t elements,
                                             const torch::TensorOptions& options);

/// On the current stream of the device (the host copies at once).
void copy_from_peer(const CopyBatch& batch, const torch::Device& device);

}  // namespace tessera
