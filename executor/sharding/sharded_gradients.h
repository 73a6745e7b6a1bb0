// Gradients that a data-parallel group shares, layer by layer.
//
// ZeRO-2 and FSDP: a layer's gradients are reduced to the shards as soon as its backward is done,
// beside the next layer's; ZeRO-1: beside the step's last backward pass. What lies outside the
// layers is reduced once per step, the head beside the last backward pass. Without ZeRO all are
// summed at the end. Collective over the group; one thread at a time.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "executor/sharding/parked.h"
#include "executor/sharding/shard_reducer.h"
#include "executor/sharding/sharding.h"

namespace tessera {

/// Gradients of one rank and their way to its shard space.
class ShardedGradients {
 public:
  ShardedGradients(Weights& weights, const ParallelGroups& groups, const ShardMap& map,
                   const ShardingOptions& options);

  /// fp32, by table row; undefined for layers whose gradients exist only during their backward.
  const std::vector<torch::Tensor>& rows() const { return rows_; }
  /// fp32 in shard space; complete after finish().
  const torch::Tensor& shards() const { return shards_; }
  void zero();
  /// ZeRO-2 and FSDP: gradients of a layer begin, and end.
  bool by_layer() const { return by_layer_; }
  /// Gradients go to shards.
  bool reduces() const { return map_.kind != ShardKind::none; }
  void begin_layer(const ShardBucket& bucket);
  void end_layer(const ShardBucket& bucket);
  /// The step's gradients of a bucket are complete (ZeRO-2 and FSDP: of one outside the layers):
  /// their reduction begins.
  void end_bucket(const ShardBucket& bucket);
  /// Sums over everybody who holds the same element.
  void finish();
  std::int64_t bytes() const;
  /// Hands `parked` what holds gradients between passes, to leave the device; idle memory is given
  /// back. Precondition: no pass is running, streams are synchronised.
  void park_in(Parked& parked);

 private:
  void make_memory();
  void share_memory();
  void attach(const ShardBucket& bucket, const torch::Tensor& memory);
  void attach_to_shards(const ShardBucket& bucket);
  void reduce_partials(const ShardBucket& bucket);
  void clear_vectors(const ShardBucket& bucket);
  void clear_untouched();
  void end(const ShardBucket& bucket);
  void reduce_whole(const ShardBucket& bucket);
  void reduce_replicas();
  void reduce_to_shards(const ShardBucket& bucket, const torch::Tensor& memory, bool accumulate);
  void reduce_flat(const ShardBucket& bucket, const torch::Tensor& memory, bool accumulate);
  void reduce_even(const std::vector<EvenRow>& rows, const torch::Tensor& memory, bool accumulate);
  void reduce_packed(const ShardBucket& bucket, const torch::Tensor& memory, bool accumulate);

  Weights& weights_;
  const ParallelGroups& groups_;
  const ShardMap& map_;
  ShardingOptions options_;
  Communicator* group_;
  bool by_layer_;
  std::map<std::int64_t, BucketParts> parts_;  // by layer; stored shards
  std::unique_ptr<ShardReducer> reducer_;      // nullptr: reduced by collectives
  std::set<std::int64_t> untouched_;           // layers whose shards hold nothing of this step yet
  std::set<std::int64_t> ended_;               // of this step, by end_bucket
  BufferPool pool_;
  torch::Tensor shards_;
  std::vector<torch::Tensor> rows_;
  std::map<std::int64_t, torch::Tensor> memory_;  // by layer: the whole gradients
  std::vector<int> partial_rows_;
  SideStream::Moment reduced_;
};

}  // namespace tessera
