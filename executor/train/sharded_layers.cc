#include "executor/train/sharded_layers.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_zero.h>

#include <algorithm>
#include <utility>

#include "executor/comm/reduce_batch.h"
#include "executor/model/layer_ops.h"
#include "executor/model/parallel_ops.h"

namespace tessera {
namespace {

using torch::Tensor;

std::size_t index(int i) { return static_cast<std::size_t>(i); }
std::size_t count_of(const Tensor& x) { return static_cast<std::size_t>(x.numel()); }

/// A tensor of its own (no view for autograd) in `storage`.
Tensor placed(const c10::Storage& storage, std::int64_t offset, at::IntArrayRef shape,
              const torch::TensorOptions& options) {
  return torch::empty({0}, options).set_(storage, offset, shape, c10::contiguous_strides(shape));
}

/// Elements of a row's tensor that a segment names.
Tensor part_of(const std::vector<Tensor>& rows, const ShardSegment& segment) {
  return rows[index(segment.row)].view(-1).narrow(0, segment.first, segment.count);
}

void copy_all(std::vector<Tensor> to, const std::vector<Tensor>& from) {
  if (!to.empty()) at::_foreach_copy_(to, from);
}

/// The rows of a bucket as views of its memory.
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

/// Layers follow one another: one's buffer is in use on a stream while the next one needs its own.
int spares_of(const ShardBucket& bucket) { return bucket.layer >= 0 ? 1 : 0; }

/// Of a bucket's whole gradients.
std::int64_t memory_elements(const ShardMap& map, const ShardBucket& bucket) {
  return map.kind == ShardKind::flat ? bucket.block * map.shards : bucket.extent;
}

/// Elements: shared memory is cut at multiples of it.
constexpr std::int64_t kSharedAlignment = 256;

std::map<std::int64_t, BucketParts> parts_by_layer(const ShardMap& map) {
  std::map<std::int64_t, BucketParts> parts;
  if (map.kind != ShardKind::stored) return parts;
  for (const ShardBucket& bucket : map.buckets) parts[bucket.layer] = parts_of(bucket, map.rank);
  return parts;
}

}  // namespace

Communicator* shard_group(const ParallelGroups& groups, const ParallelLayout& layout) {
  if (layout.dp_shard > 1) return groups.dp_shard ? groups.dp_shard.get() : groups.dp.get();
  if (layout.zero == 0) return nullptr;
  if (groups.dp_cp) return groups.dp_cp.get();
  return groups.dp ? groups.dp.get() : groups.cp.get();
}

std::unique_ptr<Communicator> make_shard_group(Communicator& world, const RankMap& map) {
  const ParallelLayout& layout = map.layout;
  const bool shared = layout.dp_shard > 1 || (layout.zero >= 1 && layout.dp() * layout.cp > 1);
  if (!shared) return nullptr;
  const int index = map.index_of(world.rank());
  if (index < 0) return world.split({});
  if (layout.dp_shard > 1) return world.split(group_of(map, Axis::dp_shard, world.rank()));
  const RankCoord& mine = map.coords[static_cast<std::size_t>(index)];
  std::vector<int> members;
  for (int replica = 0; replica < layout.dp(); ++replica) {
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
  if (there_.contains(bucket.layer)) return;
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

ShardedGradients::ShardedGradients(Weights& weights, const ParallelGroups& groups,
                                   const ShardMap& map, const ShardingOptions& options)
    : weights_(weights),
      groups_(groups),
      map_(map),
      options_(options),
      group_(group_for(groups, options, weights.layout)),
      by_layer_(weights.layout.zero >= 2 && map.kind != ShardKind::none),
      parts_(parts_by_layer(map)),
      pool_(options_.side),
      rows_(weights.tensors.size()),
      partial_rows_(partial_gradient_rows(weights)) {
  const auto fp32 = torch::TensorOptions().dtype(torch::kFloat32).device(weights.device());
  shards_ = torch::zeros({map.elements}, fp32);
  for (const ShardBucket& bucket : map.buckets) {
    for (const int row : bucket.rows) {
      Tensor& tensor = weights.tensors[index(row)];
      tensor.requires_grad_(true);
      if (weights.dtype != DType::fp32) tensor.set_grad_dtype(torch::kFloat32);
    }
    if (map.kind == ShardKind::none) {
      for (const ShardSegment& segment : map.own(bucket)) {
        Tensor& tensor = weights.tensors[index(segment.row)];
        rows_[index(segment.row)] =
            placed(shards_.storage(), segment.shard, tensor.sizes().vec(), fp32);
        tensor.mutable_grad() = rows_[index(segment.row)];
      }
    }
  }
  if (reduces()) make_memory();
}

/// Of the buckets whose gradients stay until they are reduced; layers reduced one by one take turns
/// in the pool's.
void ShardedGradients::make_memory() {
  share_memory();
  for (const ShardBucket& bucket : map_.buckets) {
    if (by_layer_ && bucket.layer >= 0) {
      untouched_.insert(bucket.layer);
      continue;
    }
    Tensor& memory = memory_[bucket.layer];
    if (!memory.defined())
      memory = torch::zeros({memory_elements(map_, bucket)}, shards_.options());
    attach(bucket, memory);
  }
}

/// Where peers read gradients, all memory is cut out of what they read, alike on every rank: two
/// buffers for layers of each size that take turns, and what stays.
void ShardedGradients::share_memory() {
  if (options_.host_group == nullptr || !options_.read_gradients || group_ == nullptr ||
      !reduces()) {
    return;
  }
  std::vector<std::pair<const ShardBucket*, std::int64_t>> places;
  std::set<std::int64_t> sizes;
  std::int64_t end = 0;
  const auto place = [&](const ShardBucket& bucket) {
    places.emplace_back(&bucket, end);
    const std::int64_t elements = memory_elements(map_, bucket);
    end += (elements + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment;
  };
  const auto pooled = [&](const ShardBucket& bucket) { return by_layer_ && bucket.layer >= 0; };
  for (const ShardBucket& bucket : map_.buckets) {
    if (pooled(bucket) && !sizes.insert(memory_elements(map_, bucket)).second) continue;
    place(bucket);
    if (pooled(bucket)) place(bucket);
  }
  std::unique_ptr<PeerMemory> shared =
      make_peer_memory(*options_.host_group, end, shards_.options());
  if (shared == nullptr) return;
  reducer_ = std::make_unique<ShardReducer>(std::move(shared));
  for (const auto& [bucket, offset] : places) {
    const Tensor memory = reducer_->own().narrow(0, offset, memory_elements(map_, *bucket));
    if (pooled(*bucket)) {
      pool_.give(memory, options_.side.now());
    } else {
      memory_[bucket->layer] = memory;
    }
  }
}

void ShardedGradients::attach(const ShardBucket& bucket, const Tensor& memory) {
  for (std::size_t i = 0; i < bucket.rows.size(); ++i) {
    Tensor& tensor = weights_.tensors[index(bucket.rows[i])];
    Tensor& gradient = rows_[index(bucket.rows[i])];
    gradient = memory.defined()
                   ? placed(memory.storage(), memory.storage_offset() + bucket.place[i],
                            tensor.sizes().vec(), memory.options())
                   : Tensor();
    tensor.mutable_grad() = gradient;
  }
}

void ShardedGradients::zero() {
  // Elsewhere the first reduction of a step overwrites the shards.
  if (map_.kind == ShardKind::none) shards_.zero_();
  for (auto& [layer, memory] : memory_) memory.zero_();
  if (!by_layer_) return;
  for (const ShardBucket& bucket : map_.buckets) {
    if (bucket.layer >= 0) untouched_.insert(bucket.layer);
  }
}

void ShardedGradients::begin_layer(const ShardBucket& bucket) {
  if (!by_layer_) return;
  const BufferPool::Buffer buffer =
      pool_.take(memory_elements(map_, bucket), shards_.options(), spares_of(bucket));
  options_.side.wait(buffer.free);
  memory_[bucket.layer] = buffer.memory;
  attach(bucket, buffer.memory);
  clear_vectors(bucket);
  overwrite_matrix_gradients(true);
}

/// Norms and biases are added to; matrices get one product each, which overwrites.
void ShardedGradients::clear_vectors(const ShardBucket& bucket) {
  std::vector<Tensor> vectors;
  for (const int row : bucket.rows) {
    if (rows_[index(row)].dim() == 1) vectors.push_back(rows_[index(row)]);
  }
  if (!vectors.empty()) at::_foreach_zero_(vectors);
}

void ShardedGradients::end_layer(const ShardBucket& bucket) {
  if (!by_layer_) return;
  const torch::NoGradGuard no_grad;
  overwrite_matrix_gradients(false);
  reduce_partials(bucket);
  const Tensor memory = memory_.at(bucket.layer);
  const bool accumulate = untouched_.erase(bucket.layer) == 0;
  reduced_ =
      options_.side.run(options_.side.now(), [&] { reduce_to_shards(bucket, memory, accumulate); });
  attach(bucket, {});
  pool_.give(memory, reduced_);
  memory_.erase(bucket.layer);
}

/// Over the tensor-parallel group: rows of this bucket that each rank has a part of.
void ShardedGradients::reduce_partials(const ShardBucket& bucket) {
  std::vector<int> mine;
  for (const int row : partial_rows_) {
    if (std::find(bucket.rows.begin(), bucket.rows.end(), row) != bucket.rows.end()) {
      mine.push_back(row);
    }
  }
  reduce_partial_gradients(weights_, groups_.tp.get(), mine, rows_);
}

void ShardedGradients::reduce_to_shards(const ShardBucket& bucket, const Tensor& memory,
                                        bool accumulate) {
  if (reducer_ != nullptr) return reducer_->reduce(map_, bucket, memory, shards_, accumulate);
  if (map_.kind == ShardKind::flat) return reduce_flat(bucket, memory, accumulate);
  const BucketParts& parts = parts_.at(bucket.layer);
  reduce_even(parts.even, memory, accumulate);
  reduce_packed(parts.rest, memory, accumulate);
}

/// Equal parts of the bucket's memory: one piece of shard space.
void ShardedGradients::reduce_flat(const ShardBucket& bucket, const Tensor& memory,
                                   bool accumulate) {
  if (bucket.block == 0) return;
  const Tensor shard = shards_.narrow(0, bucket.shard, bucket.block);
  const Tensor own = accumulate ? torch::empty_like(shard) : shard;
  group_->reduce_scatter(memory.data_ptr(), own.data_ptr(), static_cast<std::size_t>(bucket.block),
                         DType::fp32, ReduceOp::sum);
  if (accumulate) shard.add_(own);
}

/// Every rank's part of a row straight from the row's gradient.
void ShardedGradients::reduce_even(const std::vector<EvenRow>& rows, const Tensor& memory,
                                   bool accumulate) {
  if (rows.empty()) return;
  std::vector<Tensor> to, from;
  std::vector<ReduceBlock> blocks;
  for (const EvenRow& row : rows) {
    to.push_back(shards_.narrow(0, row.shard, row.count));
    from.push_back(accumulate ? torch::empty_like(to.back()) : to.back());
    blocks.push_back({memory.data_ptr<float>() + row.place, from.back().data_ptr<float>(),
                      static_cast<std::size_t>(row.count)});
  }
  reduce_scatter_batch(*group_, blocks, DType::fp32, ReduceOp::sum);
  if (accumulate) at::_foreach_add_(to, from);
}

/// Views of the bucket's rows are taken from `memory`: by the time this runs rows_ may be
/// another's.
void ShardedGradients::reduce_packed(const ShardBucket& bucket, const Tensor& memory,
                                     bool accumulate) {
  if (bucket.block == 0) return;
  const std::vector<Tensor> rows = row_views(weights_, bucket, memory);
  const Tensor send = torch::zeros({map_.shards, bucket.block}, memory.options());
  for (int rank = 0; rank < map_.shards; ++rank) pack_block(bucket, rank, rows, send[rank]);
  const Tensor own = torch::empty({bucket.block}, memory.options());
  group_->reduce_scatter(send.data_ptr(), own.data_ptr(), static_cast<std::size_t>(bucket.block),
                         DType::fp32, ReduceOp::sum);
  std::vector<Tensor> to, from;
  for (const ShardSegment& segment : map_.own(bucket)) {
    to.push_back(shards_.narrow(0, segment.shard, segment.count));
    from.push_back(own.narrow(0, segment.block, segment.count));
  }
  if (to.empty()) return;
  if (accumulate) {
    at::_foreach_add_(to, from);
  } else {
    at::_foreach_copy_(to, from);
  }
}

void ShardedGradients::end_bucket(const ShardBucket& bucket) {
  if (!reduces()) return;
  const torch::NoGradGuard no_grad;
  end(bucket);
}

void ShardedGradients::end(const ShardBucket& bucket) {
  reduce_partials(bucket);
  if (bucket.layer == kFrontBucket) {
    reduce_tied_embedding(weights_, groups_.embedding.get(), rows_);
  }
  if (reduces()) reduce_whole(bucket);
  ended_.insert(bucket.layer);
}

void ShardedGradients::reduce_whole(const ShardBucket& bucket) {
  const Tensor& memory = memory_.at(bucket.layer);
  reduced_ = options_.side.run(options_.side.now(),
                               [&] { reduce_to_shards(bucket, memory, /*accumulate=*/false); });
}

void ShardedGradients::finish() {
  const torch::NoGradGuard no_grad;
  for (const ShardBucket& bucket : map_.buckets) {
    if ((by_layer_ && bucket.layer >= 0) || ended_.contains(bucket.layer)) continue;
    end(bucket);
  }
  ended_.clear();
  options_.side.wait(reduced_);
  clear_untouched();
  const ReplicaGroups replicas = replica_groups(groups_, weights_.layout);
  for (Communicator* group : {replicas.data, replicas.context}) {
    if (group != nullptr) {
      group->all_reduce(shards_.data_ptr(), count_of(shards_), DType::fp32, ReduceOp::sum);
    }
  }
}

/// Layers that had no backward pass in this step.
void ShardedGradients::clear_untouched() {
  for (const std::int64_t layer : untouched_) {
    for (const ShardSegment& segment : map_.own(map_.of_layer(layer))) {
      shards_.narrow(0, segment.shard, segment.count).zero_();
    }
  }
}

void ShardedGradients::park_in(Parked& parked) {
  pool_.clear();
  parked.add(shards_);
  for (const auto& [layer, memory] : memory_) parked.add(memory);
}

std::int64_t ShardedGradients::bytes() const {
  std::int64_t elements = shards_.numel();
  for (const auto& [layer, memory] : memory_) elements += memory.numel();
  return 4 * elements;
}

}  // namespace tessera
