#include "executor/sharding/sharded_parameters.h"

#include <utility>

namespace tessera {
namespace {

using torch::Tensor;

std::size_t index(int i) { return static_cast<std::size_t>(i); }

}  // namespace

ShardedParameters::ShardedParameters(Weights& weights, const ParallelGroups& groups,
                                     const ShardingOptions& options)
    : weights_(weights),
      options_(options),
      map_(make_shard_map(weights, groups)),
      parts_(parts_by_layer(map_)),
      group_(group_for(groups, options, weights.layout)),
      pool_(options_.side) {
  const torch::NoGradGuard no_grad;
  const auto plain = weights.storage.options().requires_grad(false);
  Tensor stored;
  std::unique_ptr<PeerMemory> shared;
  if (options_.host_group != nullptr && group_ != nullptr) {
    shared = make_peer_memory(*options_.host_group, map_.elements, plain);
  }
  if (shared != nullptr) {
    reader_ = std::make_unique<ShardReader>(std::move(shared));
    stored = reader_->own();
  } else {
    stored = torch::zeros({map_.elements}, plain);
  }
  for (const ShardBucket& bucket : map_.buckets) {
    for (const ShardSegment& segment : map_.own(bucket)) {
      stored.narrow(0, segment.shard, segment.count).copy_(part_of(weights.tensors, segment));
    }
    if (bucket.local) {  // stays where it is
      for (const ShardSegment& segment : map_.own(bucket)) {
        Tensor& tensor = weights.tensors[index(segment.row)];
        tensor = placed(stored.storage(), stored.storage_offset() + segment.shard,
                        tensor.sizes().vec(), plain);
      }
      continue;
    }
    const std::size_t bytes = static_cast<std::size_t>(bucket.extent) * stored.element_size();
    c10::Storage storage(c10::Storage::use_byte_size_t(), bytes,
                         c10::DataPtr(nullptr, weights.device()), nullptr, false);
    for (std::size_t i = 0; i < bucket.rows.size(); ++i) {
      Tensor& tensor = weights.tensors[index(bucket.rows[i])];
      tensor = placed(storage, bucket.place[i], tensor.sizes().vec(), plain);
    }
    storages_.emplace(bucket.layer, std::move(storage));
  }
  weights.storage = stored;
  weights.arena = arena_layout(weights.table, weights.layout, weights.coord, weights.dtype, true);
  changed();
}

void ShardedParameters::gather(const ShardBucket& bucket) {
  if (bucket.local || there_.contains(bucket.layer)) return;
  const torch::NoGradGuard no_grad;
  const BufferPool::Buffer buffer =
      pool_.take(bucket.extent, weights_.storage.options().requires_grad(false), spares_of(bucket));
  const SideStream::Moment ready = options_.side.run(buffer.free, [&] {
    options_.side.wait(changed_);
    if (reader_ != nullptr) return read(bucket, buffer.memory);
    const BucketParts& parts = parts_.at(bucket.layer);
    gather_even(parts.even, buffer.memory);
    gather_packed(parts.rest, buffer.memory);
  });
  storages_.at(bucket.layer)
      .unsafeGetStorageImpl()
      ->set_data_ptr_noswap(c10::DataPtr(buffer.memory.data_ptr(), weights_.device()));
  there_[bucket.layer] = {buffer.memory, ready};
}

void ShardedParameters::changed() {
  changed_ = options_.side.now();
  others_final_ = false;
}

/// Shards stay as they are until everybody's gradients have been reduced, and that waits for
/// everybody's reads; so one barrier after each change is all the order that reads need.
void ShardedParameters::read(const ShardBucket& bucket, const Tensor& memory) {
  if (!others_final_) {
    reader_->await_all();
    others_final_ = true;
  }
  const std::map<int, std::int64_t> places = places_of(bucket);
  auto* const whole = static_cast<std::byte*>(memory.mutable_data_ptr());
  const auto size = static_cast<std::int64_t>(memory.element_size());
  reader_->read(map_, bucket, [&](int row) { return whole + places.at(row) * size; });
}

/// Every rank's part straight to where the layer's tensors want it.
void ShardedParameters::gather_even(const std::vector<EvenRow>& rows, const Tensor& memory) {
  const auto size = static_cast<std::int64_t>(memory.element_size());
  const auto* shards = static_cast<const std::byte*>(weights_.storage.const_data_ptr());
  auto* whole = static_cast<std::byte*>(memory.mutable_data_ptr());
  std::vector<GatherBlock> blocks;
  for (const EvenRow& row : rows) {
    blocks.push_back({shards + row.shard * size, whole + row.place * size,
                      static_cast<std::size_t>(row.count * size)});
  }
  if (!blocks.empty()) group_->all_gather_batch(blocks);
}

/// Uneven parts travel in blocks of the longest rank's length.
void ShardedParameters::gather_packed(const ShardBucket& bucket, const Tensor& memory) {
  if (bucket.block == 0) return;
  Tensor all = torch::empty({map_.shards, bucket.block}, memory.options());
  Tensor own = all[map_.rank];
  std::vector<Tensor> to, from;
  for (const ShardSegment& segment : map_.own(bucket)) {
    to.push_back(own.narrow(0, segment.block, segment.count));
    from.push_back(weights_.storage.narrow(0, segment.shard, segment.count));
  }
  copy_all(std::move(to), from);
  group_->all_gather(own.data_ptr(), all.data_ptr(), static_cast<std::size_t>(bucket.block),
                     weights_.dtype);
  const std::vector<Tensor> rows = row_views(weights_, bucket, memory);
  for (int rank = 0; rank < map_.shards; ++rank) unpack_block(bucket, rank, all[rank], rows);
}

void ShardedParameters::await(const ShardBucket& bucket) {
  if (bucket.local) return;
  gather(bucket);
  options_.side.wait(there_.at(bucket.layer).ready);
}

void ShardedParameters::release(const ShardBucket& bucket) {
  const auto found = there_.find(bucket.layer);
  if (found == there_.end()) return;
  storages_.at(bucket.layer)
      .unsafeGetStorageImpl()
      ->set_data_ptr_noswap(c10::DataPtr(nullptr, weights_.device()));
  pool_.give(found->second.memory, options_.side.now());
  there_.erase(found);
}

}  // namespace tessera
