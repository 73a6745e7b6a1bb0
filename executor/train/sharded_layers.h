// Parameters and gradients that a data-parallel group shares, layer by layer.
//
// FSDP: parameters lie in this rank's stored arena (what a reshard reads); a layer is gathered into
// a flat buffer before its use, the next one at the same time, and given back afterwards (with
// reshard_after_forward also between forward and backward; the model's last layer stays). ZeRO-2
// and FSDP: a layer's gradients are reduced to the shards as soon as its backward is done, beside
// the next layer's. What lies outside the layers (embedding; final norm and head) is gathered once
// per pass and reduced once per step, the head beside the last backward pass. Collective over the
// group; one thread at a time.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "executor/comm/groups.h"
#include "executor/model/decoder.h"
#include "executor/model/side_stream.h"
#include "executor/train/parked.h"
#include "executor/train/shard_map.h"
#include "executor/train/shard_reader.h"
#include "executor/train/shard_reducer.h"

namespace tessera {

struct ShardingOptions {
  bool reshard_after_forward = true;
  /// The ranks of shard_group with collectives on `side`; the role's own where nullptr.
  Communicator* side_group = nullptr;
  SideStream side;
  /// The same ranks on host memory. Where it is given and all of them are on one host, parameters
  /// and, with read_gradients, gradients are read out of the other ranks' memory: on GPUs by copy
  /// engines, which leaves the multiprocessors to the computation.
  Communicator* host_group = nullptr;
  bool read_gradients = true;
};

/// The group that shares parameters (stored) or gradients and states; nullptr when nobody does.
/// Context-parallel ranks hold equal parameters: ZeRO-1 and 2 cut over dp x cp.
Communicator* shard_group(const ParallelGroups& groups, const ParallelLayout& layout);
/// The same ranks as a group of `world`, nullptr where there is none. Every rank of the world calls
/// it, members of the role or not.
std::unique_ptr<Communicator> make_shard_group(Communicator& world, const RankMap& map);
/// Ranks with the same shards, whose gradients are summed: over one group after the other, nullptr
/// where there is none.
struct ReplicaGroups {
  Communicator *data = nullptr, *context = nullptr;
};
ReplicaGroups replica_groups(const ParallelGroups& groups, const ParallelLayout& layout);
ShardKind shard_kind(const ParallelLayout& layout, const ParallelGroups& groups);
ShardMap make_shard_map(const Weights& weights, const ParallelGroups& groups);

/// Flat buffers that are used again and again.
class BufferPool {
 public:
  explicit BufferPool(const SideStream& side) : side_(side) {}
  struct Buffer {
    torch::Tensor memory;
    SideStream::Moment free;  // its last use ends here
  };
  /// Beside a side stream `spare` buffers of this size stay idle: the last one given back may be in
  /// use there still.
  Buffer take(std::int64_t elements, const torch::TensorOptions& options, int spare);
  void give(torch::Tensor memory, SideStream::Moment free);
  /// Idle buffers go back to torch. Precondition: nothing on either stream uses them.
  void clear() { idle_.clear(); }

 private:
  const SideStream& side_;
  std::vector<Buffer> idle_;
};

/// Copies between a bucket's rows and the blocks of a collective, [shards, block] or one block.
void pack_block(const ShardBucket& bucket, int rank, const std::vector<torch::Tensor>& rows,
                const torch::Tensor& block);
void unpack_block(const ShardBucket& bucket, int rank, const torch::Tensor& block,
                  const std::vector<torch::Tensor>& rows);

/// FSDP's parameters. Precondition: layout.dp_shard > 1.
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
  /// What holds gradients between passes, to leave the device with `parked`; idle memory is given
  /// back. Precondition: no pass is running, streams are synchronised.
  void park_in(Parked& parked);

 private:
  void make_memory();
  void share_memory();
  void attach(const ShardBucket& bucket, const torch::Tensor& memory);
  void reduce_partials(const ShardBucket& bucket);
  void clear_vectors(const ShardBucket& bucket);
  void clear_untouched();
  void end(const ShardBucket& bucket);
  void reduce_whole(const ShardBucket& bucket);
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
