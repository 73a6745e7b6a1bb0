// Sharding: ranks that share parameters or gradients: who they are, by which ways their
// parts travel, and the flat buffers that hold a layer.
//
// Groups follow from the layout alone. Sizes and offsets in elements. A pool belongs to one thread.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "executor/comm/groups.h"
#include "executor/sharding/shard_map.h"
#include "executor/tensor/side_stream.h"
#include "executor/weights/weights.h"

namespace tessera {

struct ShardingOptions {
  bool reshard_after_forward = true;
  /// The ranks of shard_group with collectives on `side`; the role's own where nullptr.
  Communicator* side_group = nullptr;
  SideStream side;
  /// These ranks on host memory. Where it is given and all of them are on one host, parameters
  /// and, with read_gradients, gradients are read out of the other ranks' memory: on GPUs by copy
  /// engines, which leaves the multiprocessors to the computation.
  Communicator* host_group = nullptr;
  bool read_gradients = true;
};

/// The group that shares parameters (stored) or gradients and states; nullptr when nobody does.
/// Context-parallel ranks hold equal parameters: ZeRO-1 and 2 cut over dp x cp.
Communicator* shard_group(const ParallelGroups& groups, const ParallelLayout& layout);
/// Makes these ranks a group of `world`, nullptr where there is none. Every rank of the world calls
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

/// Idle buffers that a bucket's use leaves: layers follow one another, so one's buffer is in use on
/// a stream while the next one needs its own.
inline int spares_of(const ShardBucket& bucket) { return bucket.layer >= 0 ? 1 : 0; }

/// `options.side_group`, else the role's own shard_group.
Communicator* group_for(const ParallelGroups& own, const ShardingOptions& options,
                        const ParallelLayout& layout);
/// Parts of stored shards by layer; empty where none are stored.
std::map<std::int64_t, BucketParts> parts_by_layer(const ShardMap& map);

/// A tensor of its own (no view for autograd) in `storage`.
torch::Tensor placed(const c10::Storage& storage, std::int64_t offset, at::IntArrayRef shape,
                     const torch::TensorOptions& options);
/// Elements of a row's tensor that a segment names.
torch::Tensor part_of(const std::vector<torch::Tensor>& rows, const ShardSegment& segment);
/// By table row: the rows of a bucket as views of its memory.
std::vector<torch::Tensor> row_views(const Weights& weights, const ShardBucket& bucket,
                                     const torch::Tensor& memory);
void copy_all(std::vector<torch::Tensor> to, const std::vector<torch::Tensor>& from);

/// Copies between a bucket's rows and the blocks of a collective, [shards, block] or one block.
void pack_block(const ShardBucket& bucket, int rank, const std::vector<torch::Tensor>& rows,
                const torch::Tensor& block);
void unpack_block(const ShardBucket& bucket, int rank, const torch::Tensor& block,
                  const std::vector<torch::Tensor>& rows);

}  // namespace tessera
