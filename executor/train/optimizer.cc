#include "executor/train/optimizer.h"

#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_fused_adamw.h>

#include <algorithm>
#include <cmath>

#include "cost_models/documents/check.h"
#include "cost_models/spec/expert_parallel.h"

namespace tessera {
namespace {

using torch::Tensor;

std::vector<Tensor> views(const Tensor& flat, const std::vector<fused::Chunk>& chunks) {
  std::vector<Tensor> result;
  for (const fused::Chunk& chunk : chunks)
    result.push_back(flat.narrow(0, chunk.offset, chunk.count));
  return result;
}

}  // namespace

Optimizer::Optimizer(Weights& weights, const ParallelGroups& groups, const AdamWOptions& options,
                     const ShardingOptions& sharding, ShardedParameters* parameters)
    : weights_(weights),
      groups_(groups),
      options_(options),
      parameters_(parameters),
      map_(make_shard_map(weights, groups)),
      sharded_(weights, groups, map_, sharding),
      side_(sharding.side),
      shard_group_(group_for(groups, sharding, weights.layout)) {
  const torch::NoGradGuard no_grad;
  if (map_.kind == ShardKind::flat) {
    const auto plain = weights.storage.options().requires_grad(false);
    if (sharding.host_group != nullptr) {
      std::unique_ptr<PeerMemory> shared =
          make_peer_memory(*sharding.host_group, map_.elements, plain);
      if (shared != nullptr) reader_ = std::make_unique<ShardReader>(std::move(shared));
    }
    values_ = reader_ != nullptr ? reader_->own() : torch::zeros({map_.elements}, plain);
    for (const ShardBucket& bucket : map_.buckets)
      for (const ShardSegment& s : map_.own(bucket))
        values_.narrow(0, s.shard, s.count)
            .copy_(weights.tensors[static_cast<std::size_t>(s.row)].detach().view(-1).narrow(
                0, s.first, s.count));
  } else {
    values_ = weights.storage;
  }
  find_runs();
  state_.count = map_.elements;
  // fp32 weights are their own master weights where they lie as the shard space does.
  const bool packed = values_.numel() == map_.elements &&
                      std::all_of(runs_.begin(), runs_.end(),
                                  [](const Run& run) { return run.place == run.shard; });
  if (weights.dtype == DType::fp32 && !options.offload && packed) {
    state_.master = values_;
  } else {
    state_.master = torch::zeros({map_.elements}, values_.options().dtype(torch::kFloat32));
    for (const Run& run : runs_)
      state_.master.narrow(0, run.shard, run.count).copy_(values_.narrow(0, run.place, run.count));
  }
  if (options.offload) {  // before the moments, which then never lie on the device
    state_.master = state_.master.to(torch::kCPU, /*non_blocking=*/false, /*copy=*/true);
  }
  state_.exp_avg = torch::zeros_like(state_.master);
  state_.exp_avg_sq = torch::zeros_like(state_.master);
  find_chunks();
  if (options.offload) cut_pieces();
}

bool Optimizer::on_device() const { return fused::usable(state_.master); }

double Optimizer::global_norm() {
  const Tensor& gradients = sharded_.shards();
  if (fused::usable(gradients)) {
    squares_ = fused::sum_of_squares(gradients, chunks_.counted_table);
  } else {
    squares_ = torch::zeros({}, gradients.options());
    const std::vector<Tensor> counted = views(gradients, chunks_.counted);
    if (!counted.empty()) {  // an fp32 sum of a whole shard would lose what is small
      const std::vector<Tensor> norms = at::_foreach_norm(counted, 2, torch::kDouble);
      squares_ = torch::stack(norms).square().sum().to(torch::kFloat);
    }
  }
  // Shards are disjoint over their group; replicas hold the same. Experts that lie apart are
  // counted over the role.
  std::vector<Communicator*> summed{groups_.model.get(), shard_group(groups_, weights_.layout)};
  if (experts_apart(weights_.model(), weights_.layout)) summed = {groups_.role.get()};
  for (Communicator* group : summed)
    if (group != nullptr) group->all_reduce(squares_.data_ptr(), 1, DType::fp32, ReduceOp::sum);
  return std::sqrt(squares_.item<double>());
}

StepResult Optimizer::step(double learning_rate, const RowsWritten& written) {
  const torch::NoGradGuard no_grad;
  sharded_.finish();
  const StepResult result{.grad_norm = global_norm(), .applied = true};
  if (!std::isfinite(result.grad_norm)) return {result.grad_norm, false};
  ++state_.steps;
  await_weights();  // everybody has read the values that change now
  if (written && on_device() && weights_.dtype == DType::bf16) {
    update_by_bucket(learning_rate, written);
    return result;
  }
  update(learning_rate, result.grad_norm);
  finish_weights(written);
  return result;
}

/// Equal parts travel while the next bucket is updated.
void Optimizer::update_by_bucket(double learning_rate, const RowsWritten& written) {
  make_bucket_tables();
  const std::vector<std::size_t> order = update_order(map_);
  const std::size_t count = order.size(), behind = map_.kind == ShardKind::flat ? 1 : 0;
  for (std::size_t i = 0; i < count + behind; ++i) {
    if (i < count) {
      update_on_device(learning_rate, bucket_tables_[order[i]]);
      publish(map_.buckets[order[i]]);
    }
    if (i < behind) continue;
    const ShardBucket& bucket = map_.buckets[order[i - behind]];
    await_weights(bucket);
    written(bucket.rows);
  }
  end_publishing();
  if (parameters_ != nullptr) parameters_->changed();
}

void Optimizer::update_on_device(double learning_rate, const Tensor& chunks) {
  fused::adamw({.learning_rate = learning_rate,
                .beta1 = options_.beta1,
                .beta2 = options_.beta2,
                .eps = options_.eps,
                .clip_norm = options_.clip_norm,
                .step = state_.steps},
               chunks, squares_, sharded_.shards(), state_.master, state_.exp_avg,
               state_.exp_avg_sq, weights_.dtype == DType::bf16 ? values_ : Tensor());
}

void Optimizer::update(double learning_rate, double norm) {
  if (on_device()) return update_on_device(learning_rate, chunks_.updated_table);
  Tensor gradients = sharded_.shards();
  // torch.nn.utils.clip_grad_norm_: max_norm / (norm + 1e-6), at most 1.
  const double scale = options_.clip_norm / (norm + 1e-6);
  if (options_.clip_norm > 0 && scale < 1) gradients.mul_(scale);
  if (options_.offload) {
    update_on_host(learning_rate);
  } else {
    adamw_by_torch(chunks_.updated, gradients, 0, learning_rate);
  }
}

/// `gradients` begin at `origin` of the shard space.
void Optimizer::adamw_by_torch(const std::vector<fused::Chunk>& chunks, const Tensor& gradients,
                               std::int64_t origin, double learning_rate) {
  const Tensor steps = torch::full({}, static_cast<double>(state_.steps), state_.master.options());
  for (const double decay : {options_.weight_decay, 0.0}) {
    std::vector<fused::Chunk> mine, from;
    for (const fused::Chunk& chunk : chunks) {
      if (chunk.decay != decay) continue;
      mine.push_back(chunk);
      from.push_back({chunk.offset - origin, chunk.count, decay});
    }
    if (mine.empty()) continue;
    at::_fused_adamw_(views(state_.master, mine), views(gradients, from),
                      views(state_.exp_avg, mine), views(state_.exp_avg_sq, mine), {},
                      std::vector<Tensor>(mine.size(), steps), learning_rate, options_.beta1,
                      options_.beta2, decay, options_.eps, /*amsgrad=*/false, /*maximize=*/false);
    if (options_.weight_decay == 0.0) break;  // one pass was all
  }
}

/// Writes the weights from the master weights, where those are others.
void Optimizer::write_weights() {
  if (values_.is_same(state_.master)) return;
  for (const Run& run : runs_)
    values_.narrow(0, run.place, run.count).copy_(state_.master.narrow(0, run.shard, run.count));
}

void Optimizer::finish_weights(const RowsWritten& written) {
  const bool there = options_.offload || (on_device() && weights_.dtype == DType::bf16);
  if (!there) write_weights();
  if (parameters_ != nullptr) parameters_->changed();
  publish_weights();
  if (!written) return;
  for (const std::size_t each : update_order(map_)) {
    const ShardBucket& bucket = map_.buckets[each];
    await_weights(bucket);
    written(bucket.rows);
  }
}

/// In the order of the forward pass, which may begin meanwhile.
void Optimizer::publish_weights() {
  for (const ShardBucket& bucket : map_.buckets) publish(bucket);
  end_publishing();
}

/// Equal parts go to every rank that computes with them, once this bucket's are on the stream.
void Optimizer::publish(const ShardBucket& bucket) {
  if (map_.kind != ShardKind::flat) return;
  if (bucket.local) {
    for (const ShardSegment& s : map_.own(bucket))
      weights_.tensors[static_cast<std::size_t>(s.row)].view(-1).copy_(
          values_.narrow(0, s.shard, s.count));
  }
  if (bucket.block == 0) return;
  arrived_[bucket.layer] = side_.run(side_.now(), [&] {
    if (reader_ == nullptr) return gather(bucket);
    reader_->await_all();
    reader_->read(map_, bucket, [&](int row) {
      return static_cast<std::byte*>(
          weights_.tensors[static_cast<std::size_t>(row)].mutable_data_ptr());
    });
  });
}

void Optimizer::gather(const ShardBucket& bucket) {
  Tensor all = torch::empty({map_.shards, bucket.block}, values_.options());
  const Tensor own = values_.narrow(0, bucket.shard, bucket.block);
  shard_group_->all_gather(own.data_ptr(), all.data_ptr(), static_cast<std::size_t>(bucket.block),
                           weights_.dtype);
  for (int rank = 0; rank < map_.shards; ++rank)
    unpack_block(bucket, rank, all[rank], weights_.tensors);
}

void Optimizer::end_publishing() {
  if (map_.kind != ShardKind::flat) return;
  published_ = side_.run({}, [&] {
    if (reader_ != nullptr) reader_->await_all();
  });
}

void Optimizer::await_weights(const ShardBucket& bucket) const {
  const auto found = arrived_.find(bucket.layer);
  if (found != arrived_.end()) side_.wait(found->second);
}

std::vector<Tensor> Optimizer::whole_gradients() {
  const torch::NoGradGuard no_grad;
  const Tensor& shards = sharded_.shards();
  std::vector<Tensor> whole(weights_.tensors.size());
  for (const ShardBucket& bucket : map_.buckets) {
    for (const int row : bucket.rows)
      whole[static_cast<std::size_t>(row)] =
          torch::zeros(weights_.tensors[static_cast<std::size_t>(row)].sizes(), shards.options());
    if (bucket.local) {
      for (const ShardSegment& s : map_.own(bucket))
        whole[static_cast<std::size_t>(s.row)].view(-1).copy_(shards.narrow(0, s.shard, s.count));
      continue;
    }
    Tensor all = torch::zeros({map_.shards, bucket.block}, shards.options());
    for (const ShardSegment& s : map_.own(bucket))
      all[map_.rank].narrow(0, s.block, s.count).copy_(shards.narrow(0, s.shard, s.count));
    if (map_.shards > 1 && bucket.block > 0)
      shard_group(groups_, weights_.layout)
          ->all_gather(all[map_.rank].data_ptr(), all.data_ptr(),
                       static_cast<std::size_t>(bucket.block), DType::fp32);
    for (int rank = 0; rank < map_.shards; ++rank) unpack_block(bucket, rank, all[rank], whole);
  }
  return whole;
}

void Optimizer::load_state(const OptimizerState& state) {
  const torch::NoGradGuard no_grad;
  TESSERA_CHECK(state.count == state_.count);
  await_weights();
  state_.master.copy_(state.master);
  state_.exp_avg.copy_(state.exp_avg);
  state_.exp_avg_sq.copy_(state.exp_avg_sq);
  state_restored(state.steps);
}

void Optimizer::state_restored(std::int64_t steps) {
  const torch::NoGradGuard no_grad;
  state_.steps = steps;
  write_weights();
  if (parameters_ != nullptr) parameters_->changed();
  publish_weights();
  await_weights();
}

void Optimizer::park_in(Parked& parked) { parked.add(values_); }

std::int64_t Optimizer::bytes() const {
  const std::int64_t owned = values_.is_same(state_.master) ? 2 : 3;
  return sharded_.bytes() + 4 * owned * state_.count;
}

}  // namespace tessera
