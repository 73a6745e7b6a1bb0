// Gradients summed straight out of the memory that the ranks of a host compute
// them in.
//
// All ranks lay their gradients out alike in memory that the others map. A rank copies the others'
// gradients of its own elements (copy engines on GPUs, no multiprocessor) and adds them up in one
// pass, in the order of ranks: the same bits in every run. Collective over the group; on the
// current stream; one thread; sizes in elements.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "executor/sharding/shard_map.h"
#include "executor/tensor/peer_memory.h"

namespace tessera {

class ShardReducer {
 public:
  /// Copies of all peers together that wait for their sum.
  static constexpr std::int64_t kStagedElements = std::int64_t{192} << 20;

  explicit ShardReducer(std::unique_ptr<PeerMemory> gradients,
                        std::int64_t staged_elements = kStagedElements);

  /// fp32, which the others read.
  const torch::Tensor& own() const { return gradients_->own(); }
  /// Into this rank's elements of `shards`: the sum over all ranks of the bucket's gradients, which
  /// lie in `memory`, a part of own() that begins at the same offset everywhere;
  /// added to what is there if `accumulate`. Afterwards memory may be written again.
  void reduce(const ShardMap& map, const ShardBucket& bucket, const torch::Tensor& memory,
              const torch::Tensor& shards, bool accumulate);

 private:
  struct Piece {
    std::int64_t memory = 0, shard = 0, staged = 0, count = 0;
  };
  std::vector<std::vector<Piece>> rounds(const ShardMap& map, const ShardBucket& bucket) const;
  void fetch(const std::vector<Piece>& round, std::int64_t offset);
  void sum(const std::vector<Piece>& round, const torch::Tensor& memory,
           const torch::Tensor& shards, bool accumulate) const;

  std::unique_ptr<PeerMemory> gradients_;
  torch::Tensor staged_;  // [ranks but this one, elements of a round]
};

}  // namespace tessera
