// FSDP's parameters, layer by layer.
//
// They lie in this rank's stored arena (what a reshard reads); a layer is gathered into a flat
// buffer before its use, the next one at the same time, and given back afterwards (with
// reshard_after_forward also between forward and backward; the model's last layer stays). What lies
// outside the layers (embedding; final norm and head) is gathered once per pass. Collective over
// the group; one thread at a time.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "executor/sharding/shard_reader.h"
#include "executor/sharding/sharding.h"

namespace tessera {

/// Precondition: layout.dp_shard > 1.
class ShardedParameters {
 public:
  /// Moves the whole weights into shards: afterwards weights.storage and arena are the stored ones.
  ShardedParameters(Weights& weights, const ParallelGroups& groups, const ShardingOptions& options);

  void gather(const ShardBucket& bucket);   // starts, if it is not there or on its way
  void await(const ShardBucket& bucket);    // the current stream may read it
  void release(const ShardBucket& bucket);  // the current stream has read it
  bool holds(const ShardBucket& bucket) const { return there_.contains(bucket.layer); }
  /// The shards changed on the current stream: later gathers come after.
  void changed();
  /// Gives idle memory back. Precondition: no pass is running, streams are synchronised.
  void release_idle() { pool_.clear(); }
  const ShardMap& map() const { return map_; }

 private:
  struct Present {
    torch::Tensor memory;
    SideStream::Moment ready;
  };
  void gather_even(const std::vector<EvenRow>& rows, const torch::Tensor& memory);
  void gather_packed(const ShardBucket& bucket, const torch::Tensor& memory);
  void read(const ShardBucket& bucket, const torch::Tensor& memory);

  Weights& weights_;
  ShardingOptions options_;
  ShardMap map_;
  std::unique_ptr<ShardReader> reader_;        // nullptr: layers are gathered by collectives
  bool others_final_ = false;                  // the others' shards may be read
  std::map<std::int64_t, BucketParts> parts_;  // by layer
  Communicator* group_;
  BufferPool pool_;
  SideStream::Moment changed_;
  std::map<std::int64_t, c10::Storage> storages_;  // by layer
  std::map<std::int64_t, Present> there_;
};

}  // namespace tessera
