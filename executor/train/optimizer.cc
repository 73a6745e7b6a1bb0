#include "executor/train/optimizer.h"

#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_fused_adamw.h>

#include <c10/core/impl/VirtualGuardImpl.h>
#include <algorithm>
#include <cmath>

#include "executor/model/placed_weights.h"

namespace tessera {
namespace {

using torch::Tensor;

bool adjoin(const fused::Chunk& a, const fused::Chunk& b) {
  return a.decay == b.decay && a.offset + a.count == b.offset;
}

constexpr std::int64_t kShortChunk = std::int64_t{1} << 14;  // elements, beside a switch

/// Appends, or lengthens the last one where they adjoin.
void append(std::vector<fused::Chunk>& chunks, const fused::Chunk& chunk) {
  if (chunk.count <= 0) return;
  if (!chunks.empty() && adjoin(chunks.back(), chunk))
    chunks.back().count += chunk.count;
  else
    chunks.push_back(chunk);
}

/// The same where the weights adjoin, too.
void append(std::vector<fused::PlacedChunk>& chunks, const fused::PlacedChunk& next) {
  if (next.chunk.count <= 0) return;
  if (!chunks.empty() && chunks.back().shift == next.shift &&
      adjoin(chunks.back().chunk, next.chunk))
    chunks.back().chunk.count += next.chunk.count;
  else
    chunks.push_back(next);
}

std::vector<Tensor> views(const Tensor& flat, const std::vector<fused::Chunk>& chunks) {
  std::vector<Tensor> result;
  for (const fused::Chunk& chunk : chunks)
    result.push_back(flat.narrow(0, chunk.offset, chunk.count));
  return result;
}

std::int64_t begin_of(const std::vector<fused::Chunk>& piece) { return piece.front().offset; }
std::int64_t end_of(const std::vector<fused::Chunk>& piece) {
  return piece.back().offset + piece.back().count;
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

std::int64_t Optimizer::place_in_values(const ShardSegment& segment) const {
  if (map_.kind != ShardKind::none) return segment.shard;
  return place_of(weights_, segment.row) + segment.first;
}

void Optimizer::find_runs() {
  std::vector<Run> runs;
  for (const ShardBucket& bucket : map_.buckets)
    for (const ShardSegment& s : map_.own(bucket))
      if (s.count > 0) runs.push_back({s.shard, place_in_values(s), s.count});
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.shard < b.shard; });
  for (const Run& run : runs) {
    const bool adjoins = !runs_.empty() && runs_.back().shard + runs_.back().count == run.shard &&
                         runs_.back().place + runs_.back().count == run.place;
    if (adjoins)
      runs_.back().count += run.count;
    else
      runs_.push_back(run);
  }
}

/// Chunks are cut at multiples of the piece's length from their own beginning, so that a CPU's
/// vector loops round every element as they do over whole chunks.
void Optimizer::cut_pieces() {
  std::vector<fused::Chunk> in_order = chunks_.updated;
  std::sort(in_order.begin(), in_order.end(),
            [](const fused::Chunk& a, const fused::Chunk& b) { return a.offset < b.offset; });
  for (const fused::Chunk& chunk : in_order) {
    for (std::int64_t first = 0; first < chunk.count; first += options_.piece_elements) {
      const fused::Chunk part{chunk.offset + first,
                              std::min(options_.piece_elements, chunk.count - first), chunk.decay};
      const bool fits =
          !pieces_.chunks.empty() &&
          part.offset + part.count - begin_of(pieces_.chunks.back()) <= options_.piece_elements;
      if (!fits) pieces_.chunks.emplace_back();
      pieces_.chunks.back().push_back(part);
    }
  }
  std::int64_t longest = 0;
  for (const auto& piece : pieces_.chunks) {
    const std::int64_t begin = begin_of(piece), end = end_of(piece);
    longest = std::max(longest, end - begin);
    pieces_.runs.emplace_back();
    for (const Run& run : runs_) {
      const Interval part =
          intersect(Interval{begin, end}, Interval{run.shard, run.shard + run.count});
      if (!part.empty())
        pieces_.runs.back().push_back({part.lo, run.place + part.lo - run.shard, part.size()});
    }
  }
  const bool gpu = weights_.device().is_cuda();
  const auto host = torch::TensorOptions().pinned_memory(gpu);
  for (int i = 0; i < 2; ++i) {
    pieces_.gradients[i] = torch::empty({longest}, host.dtype(torch::kFloat32));
    pieces_.weights[i] = torch::empty({longest}, host.dtype(values_.dtype()));
  }
  if (gpu) {
    const c10::impl::VirtualGuardImpl guard(weights_.device().type());
    pieces_.copies = SideStream(guard.getStreamFromGlobalPool(weights_.device()));
  }
}

bool Optimizer::on_device() const { return fused::usable(state_.master); }

std::vector<fused::PlacedChunk> Optimizer::updated_chunks(const ShardBucket& bucket) const {
  std::vector<fused::PlacedChunk> chunks;
  for (const ShardSegment& s : map_.own(bucket)) {
    const bool decayed = weights_.table.rows[static_cast<std::size_t>(s.row)].decayed;
    append(chunks, fused::PlacedChunk({s.shard, s.count, decayed ? options_.weight_decay : 0.0},
                                      place_in_values(s) - s.shard));
  }
  return chunks;
}

/// Those of the host do not write weights: they are as long whatever lies where.
void Optimizer::find_chunks() {
  std::vector<fused::PlacedChunk> placed;
  for (const ShardBucket& bucket : map_.buckets) {
    for (const fused::PlacedChunk& each : updated_chunks(bucket)) {
      append(chunks_.updated, each.chunk);
      append(placed, each);
    }
    for (const ShardSegment& s : map_.own(bucket)) {
      const Parameter& parameter = weights_.table.rows[static_cast<std::size_t>(s.row)];
      const Tensor& tensor = weights_.tensors[static_cast<std::size_t>(s.row)];
      const std::int64_t inner = tensor.numel() / std::max<std::int64_t>(tensor.size(0), 1);
      const Interval rows = counted_range(parameter, weights_.layout, weights_.coord);
      const Interval counted = intersect(Interval{rows.lo * inner, rows.hi * inner},
                                         Interval{s.first, s.first + s.count});
      append(chunks_.counted, {s.shard + counted.lo - s.first, counted.size(), 0.0});
    }
  }
  if (fused::usable(sharded_.shards())) {
    chunks_.counted_table = fused::chunk_table(chunks_.counted, weights_.device());
    chunks_.updated_table = fused::placed_chunk_table(placed, weights_.device());
  }
}

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
  // Shards are disjoint over their group; replicas hold the same.
  for (Communicator* group : {groups_.model.get(), shard_group(groups_, weights_.layout)})
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

void Optimizer::make_bucket_tables() {
  if (!bucket_tables_.empty()) return;
  for (const ShardBucket& bucket : map_.buckets)
    bucket_tables_.push_back(
        fused::placed_chunk_table(updated_chunks(bucket), weights_.device(), kShortChunk));
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

/// Two pieces are on their way at any time: one's gradients to the host, another's weights back.
void Optimizer::update_on_host(double learning_rate) {
  const SideStream& copies = pieces_.copies;
  const auto count = pieces_.chunks.size();
  const SideStream::Moment ready = copies.now();
  const auto part = [&](const Tensor& x, std::size_t i) {
    const auto& piece = pieces_.chunks[i];
    return x.narrow(0, begin_of(piece), end_of(piece) - begin_of(piece));
  };
  const auto room = [&](const Tensor(&buffers)[2], std::size_t i) {
    return buffers[i % 2].narrow(0, 0, end_of(pieces_.chunks[i]) - begin_of(pieces_.chunks[i]));
  };
  std::vector<SideStream::Moment> fetched(count), sent(count);
  const auto fetch = [&](std::size_t i) {
    fetched[i] = copies.run(ready, [&] {
      room(pieces_.gradients, i).copy_(part(sharded_.shards(), i), /*non_blocking=*/true);
    });
  };
  if (count > 0) fetch(0);
  for (std::size_t i = 0; i < count; ++i) {
    if (i + 1 < count) fetch(i + 1);
    SideStream::synchronize(fetched[i]);
    adamw_by_torch(pieces_.chunks[i], room(pieces_.gradients, i), begin_of(pieces_.chunks[i]),
                   learning_rate);
    if (i >= 2) SideStream::synchronize(sent[i - 2]);
    room(pieces_.weights, i).copy_(part(state_.master, i));
    sent[i] = copies.run(ready, [&] {
      const Tensor piece = room(pieces_.weights, i);
      for (const Run& run : pieces_.runs[i])
        values_.narrow(0, run.place, run.count)
            .copy_(piece.narrow(0, run.shard - begin_of(pieces_.chunks[i]), run.count),
                   /*non_blocking=*/true);
    });
  }
  if (count == 0) return;
  copies.wait(sent.back());
  SideStream::synchronize(sent.back());  // the buffers are the next step's
}

/// Of the master weights, where those are others.
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
  if (map_.kind != ShardKind::flat || bucket.block == 0) return;
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
  state_.steps = state.steps;
  state_.master.copy_(state.master);
  state_.exp_avg.copy_(state.exp_avg);
  state_.exp_avg_sq.copy_(state.exp_avg_sq);
  write_weights();
  publish_weights();
  await_weights();
}

void Optimizer::park_in(Parked& parked) { parked.add(values_); }

std::int64_t Optimizer::bytes() const {
  const std::int64_t owned = values_.is_same(state_.master) ? 2 : 3;
  return sharded_.bytes() + 4 * owned * state_.count;
}

}  // namespace tessera
