#include "executor/sharding/sharding.h"

#include <ATen/ops/_foreach_copy.h>

#include <algorithm>
#include <utility>

namespace tessera {
namespace {

using torch::Tensor;

std::size_t index(int i) { return static_cast<std::size_t>(i); }

}  // namespace

Tensor placed(const c10::Storage& storage, std::int64_t offset, at::IntArrayRef shape,
              const torch::TensorOptions& options) {
  return torch::empty({0}, options).set_(storage, offset, shape, c10::contiguous_strides(shape));
}

Tensor part_of(const std::vector<Tensor>& rows, const ShardSegment& segment) {
  return rows[index(segment.row)].view(-1).narrow(0, segment.first, segment.count);
}

void copy_all(std::vector<Tensor> to, const std::vector<Tensor>& from) {
  if (!to.empty()) at::_foreach_copy_(to, from);
}

std::vector<Tensor> row_views(const Weights& weights, const ShardBucket& bucket,
                              const Tensor& memory) {
  std::vector<Tensor> rows(weights.tensors.size());
  for (std::size_t i = 0; i < bucket.rows.size(); ++i) {
    const Tensor& like = weights.tensors[index(bucket.rows[i])];
    rows[index(bucket.rows[i])] =
        memory.narrow(0, bucket.place[i], like.numel()).view(like.sizes());
  }
  return rows;
}

Communicator* group_for(const ParallelGroups& own, const ShardingOptions& options,
                        const ParallelLayout& layout) {
  return options.side_group != nullptr ? options.side_group : shard_group(own, layout);
}

std::map<std::int64_t, BucketParts> parts_by_layer(const ShardMap& map) {
  std::map<std::int64_t, BucketParts> parts;
  if (map.kind != ShardKind::stored) return parts;
  for (const ShardBucket& bucket : map.buckets) parts[bucket.layer] = parts_of(bucket, map.rank);
  return parts;
}

Communicator* shard_group(const ParallelGroups& groups, const ParallelLayout& layout) {
  if (layout.dp_shard > 1) return groups.dp_shard ? groups.dp_shard.get() : groups.dp.get();
  if (layout.zero == 0) return nullptr;
  if (groups.dp_cp) return groups.dp_cp.get();
  return groups.dp ? groups.dp.get() : groups.cp.get();
}

std::unique_ptr<Communicator> make_shard_group(Communicator& world, const RankMap& map) {
  const ParallelLayout& layout = map.layout;
  const bool shared = layout.dp_shard > 1 || (layout.zero >= 1 && layout.dp * layout.cp > 1);
  if (!shared) return nullptr;
  const int index = map.index_of(world.rank());
  if (index < 0) return world.split({});
  if (layout.dp_shard > 1) return world.split(group_of(map, Axis::dp_shard, world.rank()));
  const RankCoord& mine = map.coords[static_cast<std::size_t>(index)];
  std::vector<int> members;
  for (int replica = 0; replica < layout.dp; ++replica) {
    for (int cp = 0; cp < layout.cp; ++cp) {
      members.push_back(
          map.rank_at({.tp = mine.tp, .cp = cp, .pp = mine.pp, .dp_replicate = replica}));
    }
  }
  return world.split(members);
}

ReplicaGroups replica_groups(const ParallelGroups& groups, const ParallelLayout& layout) {
  if (layout.dp_shard > 1) return {groups.dp_replicate.get(), groups.cp.get()};
  return layout.zero >= 1 ? ReplicaGroups{} : ReplicaGroups{groups.dp.get(), groups.cp.get()};
}

ShardKind shard_kind(const ParallelLayout& layout, const ParallelGroups& groups) {
  if (layout.dp_shard > 1) return ShardKind::stored;
  return shard_group(groups, layout) != nullptr ? ShardKind::flat : ShardKind::none;
}

ShardMap make_shard_map(const Weights& weights, const ParallelGroups& groups) {
  const Communicator* group = shard_group(groups, weights.layout);
  return make_shard_map(weights.table, weights.layout, weights.coord, weights.dtype,
                        shard_kind(weights.layout, groups), group ? group->size() : 1,
                        group ? group->rank() : 0);
}

BufferPool::Buffer BufferPool::take(std::int64_t elements, const torch::TensorOptions& options,
                                    int spare) {
  const auto fits = [&](const Buffer& b) { return b.memory.numel() == elements; };
  const auto idle = std::count_if(idle_.begin(), idle_.end(), fits);
  if (idle <= (side_.exists() ? spare : 0)) return {torch::empty({elements}, options), side_.now()};
  const auto oldest = std::find_if(idle_.begin(), idle_.end(), fits);
  Buffer buffer = std::move(*oldest);
  idle_.erase(oldest);
  return buffer;
}

void BufferPool::give(Tensor memory, SideStream::Moment free) {
  idle_.push_back({std::move(memory), std::move(free)});
}

void pack_block(const ShardBucket& bucket, int rank, const std::vector<Tensor>& rows,
                const Tensor& block) {
  std::vector<Tensor> to, from;
  for (const ShardSegment& segment : bucket.of_rank[index(rank)]) {
    to.push_back(block.narrow(0, segment.block, segment.count));
    from.push_back(part_of(rows, segment));
  }
  copy_all(std::move(to), from);
}

void unpack_block(const ShardBucket& bucket, int rank, const Tensor& block,
                  const std::vector<Tensor>& rows) {
  std::vector<Tensor> to, from;
  for (const ShardSegment& segment : bucket.of_rank[index(rank)]) {
    to.push_back(part_of(rows, segment));
    from.push_back(block.narrow(0, segment.block, segment.count));
  }
  copy_all(std::move(to), from);
}

}  // namespace tessera
