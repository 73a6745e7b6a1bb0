// Memory of this rank that the other ranks of its host read, as a tensor.
//
// Every rank brings a block of its own length; all of them are mapped everywhere. Copies and the
// barrier take their place on the current stream: on GPUs copy engines move the bytes, and no
// multiprocessor waits. One thread; sizes in elements.
#pragma once

#include <cstdint>
#include <memory>

#include "executor/comm/communicator.h"
#include "executor/storage/block_copies.h"
#include "executor/storage/peer_blocks.h"
#include "executor/storage/stream_barrier.h"
#include "executor/tensor/torch.h"

namespace tessera {

class PeerMemory {
 public:
  /// This rank's, zero at first; keeps the memory alive by itself.
  const torch::Tensor& own() const { return own_; }
  int rank() const { return host_.rank(); }
  int ranks() const { return host_.size(); }
  /// Start of a rank's memory.
  const std::byte* at(int rank) const { return blocks_.at(rank); }

  void copy(const CopyBatch& batch) const;
  /// Work that follows begins once all ranks' work before it has happened. Collective.
  void meet();

 private:
  friend std::unique_ptr<PeerMemory> make_peer_memory(Communicator&, std::int64_t,
                                                      const torch::TensorOptions&);
  PeerMemory(Communicator& host, PeerBlocks blocks, torch::Tensor own);

  Communicator& host_;
  PeerBlocks blocks_;
  torch::Tensor own_;
  std::unique_ptr<StreamBarrier> barrier_;  // nullptr on the host
};

/// Collective over `host`, a communicator on host memory that outlives the result. nullptr on all
/// ranks unless all are on one host.
std::unique_ptr<PeerMemory> make_peer_memory(Communicator& host, std::int64_t elements,
                                             const torch::TensorOptions& options);

}  // namespace tessera
