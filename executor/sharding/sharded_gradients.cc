#include "executor/sharding/sharded_gradients.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_zero.h>

#include <algorithm>
#include <utility>

#include "cost_models/spec/expert_parallel.h"
#include "executor/comm/reduce_batch.h"
#include "executor/tensor/gradient_products.h"
#include "executor/weights/parallel_ops.h"

namespace tessera {
namespace {

using torch::Tensor;

std::size_t index(int i) { return static_cast<std::size_t>(i); }
std::size_t count_of(const Tensor& x) { return static_cast<std::size_t>(x.numel()); }

/// Elements of a bucket's whole gradients in memory.
std::int64_t memory_elements(const ShardMap& map, const ShardBucket& bucket) {
  return map.kind == ShardKind::flat ? bucket.block * map.shards : bucket.extent;
}

/// Elements: shared memory is cut at multiples of it.
constexpr std::int64_t kSharedAlignment = 256;

}  // namespace

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
    if (map.kind == ShardKind::none || bucket.local) attach_to_shards(bucket);
  }
  if (reduces()) make_memory();
}

/// Elements of buckets whose gradients stay until reduced; layers that are reduced singly take
/// turns in the pool's.
void ShardedGradients::make_memory() {
  share_memory();
  for (const ShardBucket& bucket : map_.buckets) {
    if (bucket.local) continue;
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
    if (bucket.local) continue;
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

/// Gradients that this rank keeps whole are made in the shard space.
void ShardedGradients::attach_to_shards(const ShardBucket& bucket) {
  for (const ShardSegment& segment : map_.own(bucket)) {
    Tensor& tensor = weights_.tensors[index(segment.row)];
    rows_[index(segment.row)] =
        placed(shards_.storage(), segment.shard, tensor.sizes().vec(), shards_.options());
    tensor.mutable_grad() = rows_[index(segment.row)];
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
  for (const ShardBucket& bucket : map_.buckets) {
    if (bucket.local) {
      for (const int row : bucket.rows) rows_[index(row)].zero_();
    } else if (by_layer_ && bucket.layer >= 0) {
      untouched_.insert(bucket.layer);
    }
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
  overwrite_matrix_gradients(buffer.memory);
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
  overwrite_matrix_gradients({});
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
    if (bucket.local || (by_layer_ && bucket.layer >= 0) || ended_.contains(bucket.layer)) {
      continue;
    }
    end(bucket);
  }
  ended_.clear();
  options_.side.wait(reduced_);
  clear_untouched();
  reduce_replicas();
}

/// Over those who hold the same elements: where experts lie apart others for them than for the
/// rest, run by run of the shard space.
void ShardedGradients::reduce_replicas() {
  const ReplicaGroups replicas = replica_groups(groups_, weights_.layout);
  const auto reduce = [&](const std::vector<Communicator*>& groups, const Tensor& run) {
    for (Communicator* group : groups) {
      if (group == nullptr) continue;
      group->all_reduce(run.data_ptr(), count_of(run), DType::fp32, ReduceOp::sum);
    }
  };
  const std::vector<Communicator*> all{replicas.data, replicas.context};
  const ParallelLayout& layout = weights_.layout;
  if (!experts_apart(weights_.model(), layout)) return reduce(all, shards_);
  // Experts that every rank of the stage holds whole have no group of their own.
  const bool everywhere = layout.ep == 1 && layout.etp == 1;
  const std::vector<Communicator*> of_experts =
      everywhere ? std::vector{groups_.tp.get(), replicas.data, replicas.context}
                 : std::vector{groups_.edp.get()};
  std::vector<ShardSegment> own;
  for (const ShardBucket& bucket : map_.buckets) {
    own.insert(own.end(), map_.own(bucket).begin(), map_.own(bucket).end());
  }
  std::sort(own.begin(), own.end(),
            [](const ShardSegment& a, const ShardSegment& b) { return a.shard < b.shard; });
  const auto routed = [&](const ShardSegment& s) {
    return weights_.table.rows[index(s.row)].experts > 0;
  };
  for (std::size_t first = 0; first < own.size();) {
    std::size_t last = first + 1;
    while (last < own.size() && routed(own[last]) == routed(own[first])) ++last;
    const std::int64_t end = own[last - 1].shard + own[last - 1].count;
    const Tensor run = shards_.narrow(0, own[first].shard, end - own[first].shard);
    reduce(routed(own[first]) ? of_experts : all, run);
    first = last;
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
