// Parameters read straight out of the memory of the ranks that keep their parts, within a host.
//
// Every rank's shards lie in memory that the others map. On the current stream; when the others'
// shards are final is up to the caller. One thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "executor/sharding/shard_map.h"
#include "executor/tensor/peer_memory.h"

namespace tessera {

class ShardReader {
 public:
  explicit ShardReader(std::unique_ptr<PeerMemory> shards) : shards_(std::move(shards)) {}

  /// This rank's shards, which the others read. Stays valid without the reader.
  const torch::Tensor& own() const { return shards_->own(); }
  /// Work that follows on the current stream reads what everybody's stream has written so far.
  void await_all() const { shards_->meet(); }
  /// Everybody's parts of the bucket's rows; `row` says where a row's elements begin.
  void read(const ShardMap& map, const ShardBucket& bucket,
            const std::function<std::byte*(int)>& row) const;

 private:
  std::unique_ptr<PeerMemory> shards_;
};

}  // namespace tessera
