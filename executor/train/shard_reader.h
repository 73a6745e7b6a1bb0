// Layers read straight out of the memory of the ranks that keep their parts (FSDP within a host).
//
// Every rank's shards lie in a block that the others map. Reading is copies on the current stream:
// on GPUs copy engines move the bytes. When the others' shards are final is up to the caller. One
// thread; sizes in elements.
#pragma once

#include <cstdint>
#include <memory>

#include "executor/comm/communicator.h"
#include "executor/model/torch.h"
#include "executor/storage/peer_blocks.h"
#include "executor/train/shard_map.h"

namespace tessera {

class ShardReader {
 public:
  ShardReader(std::shared_ptr<SharedBlock> block, PeerBlocks peers, torch::Tensor own)
      : block_(std::move(block)), peers_(std::move(peers)), own_(std::move(own)) {}

  /// This rank's shards, which the others read. Stays valid without the reader.
  const torch::Tensor& own() const { return own_; }
  /// Everybody's parts of the bucket to their places in `memory` [bucket.extent].
  void read(const ShardMap& map, const ShardBucket& bucket, const torch::Tensor& memory) const;

 private:
  std::shared_ptr<SharedBlock> block_;
  PeerBlocks peers_;
  torch::Tensor own_;
};

/// Collective over `host`, a communicator on host memory whose ranks are the map's. `elements` are
/// of this rank's shard space. nullptr on all ranks unless all are on one host.
std::unique_ptr<ShardReader> make_shard_reader(Communicator& host, std::int64_t elements,
                                               const torch::TensorOptions& options);

}  // namespace tessera
