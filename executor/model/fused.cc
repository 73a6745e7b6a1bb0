#include "executor/model/fused.h"

#include "executor/model/deterministic.h"
#include "executor/model/placed_chunks.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>

#ifdef TESSERA_HAVE_KERNELS
#include <c10/cuda/CUDAStream.h>

#include "executor/kernels/kernels.h"
#include "executor/kernels/packed_attention.h"
#include "executor/model/to_device.h"
#endif

namespace tessera::fused {
namespace {

std::atomic<bool> enabled{true};
std::atomic<bool> deterministic{false};

}  // namespace

void enable(bool on) { enabled = on; }

void set_deterministic(bool on) {
  deterministic = on;
  at::globalContext().setDeterministicAlgorithms(on, /*warn_only=*/true);
  at::globalContext().setDeterministicFillUninitializedMemory(false);  // nothing reads it
}

#ifndef TESSERA_HAVE_KERNELS

// Built without nvcc: nothing is usable, so nothing below is ever called.
bool usable(const torch::Tensor&) { return false; }
bool attention_usable(torch::Device, at::ScalarType, std::int64_t) { return false; }
Normed rms_norm(const torch::Tensor&, const torch::Tensor&, const torch::Tensor&, double) {
  TORCH_CHECK(false, "built without kernels");
}
torch::Tensor rms_norm_backward(const torch::Tensor&, const torch::Tensor&, const torch::Tensor&,
                                const torch::Tensor&, const torch::Tensor&, const torch::Tensor&) {
  TORCH_CHECK(false, "built without kernels");
}
torch::Tensor rotate(const torch::Tensor&, const torch::Tensor&, const torch::Tensor&, bool) {
  TORCH_CHECK(false, "built without kernels");
}
torch::Tensor swiglu(const torch::Tensor&, const torch::Tensor&) {
  TORCH_CHECK(false, "built without kernels");
}
GatePair swiglu_backward(const torch::Tensor&, const torch::Tensor&, const torch::Tensor&) {
  TORCH_CHECK(false, "built without kernels");
}
VocabularySums vocabulary_sums(const torch::Tensor&, const torch::Tensor&, double) {
  TORCH_CHECK(false, "built without kernels");
}
void vocabulary_gradient_(torch::Tensor&, const torch::Tensor&, double, const torch::Tensor&,
                          const torch::Tensor&, const torch::Tensor&, const torch::Tensor&) {
  TORCH_CHECK(false, "built without kernels");
}
AttentionBatch attention_batch(const std::vector<std::int64_t>&, torch::Device) {
  TORCH_CHECK(false, "built without kernels");
}
void set_keys(AttentionBatch&, const std::vector<std::int64_t>&, torch::Device) {
  TORCH_CHECK(false, "built without kernels");
}
Attended attend(const AttentionBatch&, const torch::Tensor&, const torch::Tensor&,
                const torch::Tensor&, std::int64_t) {
  TORCH_CHECK(false, "built without kernels");
}
HeadGradients attend_backward(const AttentionBatch&, const torch::Tensor&, const torch::Tensor&,
                              const torch::Tensor&, const torch::Tensor&, const torch::Tensor&,
                              const torch::Tensor&, std::int64_t) {
  TORCH_CHECK(false, "built without kernels");
}
torch::Tensor chunk_table(const std::vector<Chunk>&, torch::Device) {
  TORCH_CHECK(false, "built without kernels");
}
torch::Tensor placed_chunk_table(const std::vector<PlacedChunk>&, torch::Device, std::int64_t) {
  TORCH_CHECK(false, "built without kernels");
}
torch::Tensor sum_of_squares(const torch::Tensor&, const torch::Tensor&) {
  TORCH_CHECK(false, "built without kernels");
}
void sum_parts(const torch::Tensor&, const std::vector<torch::Tensor>&, bool) {
  TORCH_CHECK(false, "built without kernels");
}
void adamw(const AdamWStep&, const torch::Tensor&, const torch::Tensor&, const torch::Tensor&,
           const torch::Tensor&, const torch::Tensor&, const torch::Tensor&, const torch::Tensor&) {
  TORCH_CHECK(false, "built without kernels");
}

#else

namespace {

using torch::Tensor;

void* stream_for(const Tensor& x) {
  return c10::cuda::getCurrentCUDAStream(x.device().index()).stream();
}

kernels::Real real_of(const Tensor& x) {
  return x.scalar_type() == at::kFloat ? kernels::Real::fp32 : kernels::Real::bf16;
}

void* data_of(const Tensor& x) { return x.defined() ? x.data_ptr() : nullptr; }

Tensor fp32_like(const Tensor& x, at::IntArrayRef shape) {
  return torch::empty(shape, x.options().dtype(at::kFloat).requires_grad(false));
}

Tensor empty_of(const Tensor& x, at::IntArrayRef shape) {
  return torch::empty(shape, x.options().requires_grad(false));
}

const Tensor& key_starts(const AttentionBatch& batch) {
  return batch.causal() ? batch.starts : batch.key_starts;
}

kernels::AttentionShape shape_of(const AttentionBatch& batch, const Tensor& q, const Tensor& k,
                                 const Tensor& v, std::int64_t window) {
  return {.heads = q.size(1),
          .kv_heads = k.size(1),
          .head_dim = q.size(2),
          .sequences = batch.lengths.size(0),
          .longest = batch.longest,
          .tokens = batch.tokens,
          .longest_keys = batch.causal() ? batch.longest : batch.longest_keys,
          .keys = batch.causal() ? batch.tokens : batch.keys,
          .causal = batch.causal(),
          .q_stride = q.stride(0),
          .k_stride = k.stride(0),
          .v_stride = v.stride(0),
          .window = window,
          .scale = 1.0F / std::sqrt(static_cast<float>(q.size(2)))};
}

struct Offsets {
  Tensor q, k, v, dense, dense_kv, stats;
};
Offsets offsets_of(const AttentionBatch& batch, const kernels::AttentionShape& shape) {
  TORCH_CHECK(std::max(shape.tokens, shape.keys) * std::max(shape.q_stride, shape.v_stride) <
                  (std::int64_t{1} << 31),
              "more elements in one packed batch than int32 offsets reach");
  const Tensor &queries = batch.starts, &keys = key_starts(batch);
  return {queries * shape.q_stride,
          keys * shape.k_stride,
          keys * shape.v_stride,
          queries * (shape.heads * shape.head_dim),
          keys * (shape.kv_heads * shape.head_dim),
          queries * shape.heads};
}
kernels::AttentionBatch pointers(const AttentionBatch& batch, const Offsets& offsets) {
  const Tensor& keys = batch.causal() ? batch.lengths : batch.key_lengths;
  return {batch.lengths.data_ptr(),    keys.data_ptr(),         offsets.q.data_ptr(),
          offsets.k.data_ptr(),        offsets.v.data_ptr(),    offsets.dense.data_ptr(),
          offsets.dense_kv.data_ptr(), offsets.stats.data_ptr()};
}

/// One per device and calling thread: cuDNN handles are not shared between threads. They are never
/// destroyed: autograd's threads end with the process, after cuDNN's own end.
kernels::PackedAttention& attention_of(const Tensor& x) {
  thread_local auto* const by_device = new std::map<int, kernels::PackedAttention>;
  return (*by_device)[x.device().index()];
}

Tensor workspace(const Tensor& x, std::int64_t bytes) {
  return torch::empty({std::max<std::int64_t>(bytes, 1)}, x.options().dtype(at::kByte));
}

/// The fewest shapes: the next power of two.
std::int64_t rounded_up(std::int64_t n) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
}

/// Lengths and starts of sequences in one copy, rounded up to recurring shapes.
struct Packing {
  Tensor lengths, starts;
  std::int64_t longest = 0, tokens = 0;
};
Packing packing_of(const std::vector<std::int64_t>& lengths, torch::Device device) {
  const std::int64_t count = static_cast<std::int64_t>(lengths.size());
  const std::int64_t padded = rounded_up(count);
  const Tensor host = torch::zeros({2 * padded + 1}, at::kInt);
  auto* length = host.data_ptr<std::int32_t>();
  auto* start = length + padded;
  Packing packing;
  for (std::int64_t i = 0; i < padded; ++i) {
    const std::int64_t mine = i < count ? lengths[static_cast<std::size_t>(i)] : 0;
    length[i] = static_cast<std::int32_t>(mine);
    start[i + 1] = start[i] + length[i];
    packing.longest = std::max(packing.longest, mine);
  }
  packing.tokens = start[padded];
  packing.longest = std::max<std::int64_t>(rounded_up(packing.longest), 64);
  const Tensor there = to_device(host, device);
  packing.lengths = there.narrow(0, 0, padded);
  packing.starts = there.narrow(0, padded, padded + 1);
  return packing;
}

const kernels::FlatChunk* chunks_of(const Tensor& table) {
  return static_cast<const kernels::FlatChunk*>(table.data_ptr());
}
std::int64_t count_of(const Tensor& table) {
  return table.numel() / static_cast<std::int64_t>(sizeof(kernels::FlatChunk));
}

}  // namespace

bool usable(const Tensor& x) {
  return enabled && x.is_cuda() &&
         (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16);
}

Normed rms_norm(const Tensor& x, const Tensor& residual, const Tensor& weight, double epsilon) {
  const Tensor in = x.contiguous();
  const Tensor add = residual.defined() ? residual.contiguous() : residual;
  const std::int64_t columns = in.size(-1), rows = in.numel() / columns;
  Normed out{add.defined() ? empty_of(in, in.sizes()) : in, empty_of(in, in.sizes()),
             fp32_like(in, {rows})};
  kernels::rms_norm(real_of(in), in.data_ptr(), data_of(add), weight.data_ptr(),
                    static_cast<float>(epsilon), rows, columns,
                    add.defined() ? out.sum.data_ptr() : nullptr, out.y.data_ptr(),
                    out.r.data_ptr<float>(), stream_for(in));
  return out;
}

Tensor rms_norm_backward(const Tensor& gradient, const Tensor& passed, const Tensor& x,
                         const Tensor& weight, const Tensor& r, const Tensor& weight_gradient) {
  const Tensor g = gradient.contiguous();
  const Tensor p = passed.defined() ? passed.contiguous() : passed;
  const std::int64_t columns = x.size(-1), rows = x.numel() / columns;
  Tensor dx = empty_of(x, x.sizes());
  Tensor partial = fp32_like(x, {kernels::rms_norm_blocks(rows), columns});
  kernels::rms_norm_backward(real_of(x), g.data_ptr(), data_of(p), x.data_ptr(), weight.data_ptr(),
                             r.data_ptr<float>(), rows, columns, dx.data_ptr(),
                             partial.data_ptr<float>(), weight_gradient.data_ptr<float>(),
                             stream_for(x));
  return dx;
}

Tensor rotate(const Tensor& x, const Tensor& cos, const Tensor& sin, bool back) {
  const Tensor in = x.stride(2) == 1 && x.stride(1) == x.size(2) ? x : x.contiguous();
  Tensor y = empty_of(in, in.sizes());
  kernels::rotate(real_of(in), in.data_ptr(), in.stride(0), cos.data_ptr(), sin.data_ptr(),
                  back ? -1.0F : 1.0F, in.size(0), in.size(1), in.size(2) / 2, y.data_ptr(),
                  stream_for(in));
  return y;
}

Tensor swiglu(const Tensor& gate, const Tensor& up) {
  TORCH_CHECK(gate.stride(1) == 1 && up.stride(1) == 1 && gate.stride(0) == up.stride(0));
  Tensor y = empty_of(gate, gate.sizes());
  kernels::swiglu(real_of(gate), gate.data_ptr(), up.data_ptr(), gate.stride(0), gate.size(0),
                  gate.size(1), y.data_ptr(), stream_for(gate));
  return y;
}

GatePair swiglu_backward(const Tensor& gradient, const Tensor& gate, const Tensor& up) {
  const Tensor g = gradient.contiguous();
  const std::int64_t rows = gate.size(0), columns = gate.size(1);
  const Tensor both = empty_of(gate, {rows, 2 * columns});
  // Sharing memory without being views, so that each may be an output of its own for autograd.
  const auto block = [&](std::int64_t first) {
    return torch::empty({0}, both.options())
        .set_(both.storage(), both.storage_offset() + first, {rows, columns}, both.strides());
  };
  GatePair out{block(0), block(columns)};
  kernels::swiglu_backward(real_of(gate), g.data_ptr(), gate.data_ptr(), up.data_ptr(),
                           gate.stride(0), rows, columns, out.gate.data_ptr(), out.up.data_ptr(),
                           2 * columns, stream_for(gate));
  return out;
}

VocabularySums vocabulary_sums(const Tensor& logits, const Tensor& target, double temperature) {
  const std::int64_t rows = logits.size(0);
  const auto row = [&] { return fp32_like(logits, {rows}); };
  VocabularySums out{row(), row(), row(), row()};
  kernels::vocabulary_sums(real_of(logits), logits.data_ptr(), target.data_ptr<std::int64_t>(),
                           static_cast<float>(temperature), rows, logits.size(1),
                           out.highest.data_ptr<float>(), out.sum.data_ptr<float>(),
                           out.weighted.data_ptr<float>(), out.picked.data_ptr<float>(),
                           stream_for(logits));
  return out;
}

void vocabulary_gradient_(Tensor& logits, const Tensor& target, double temperature,
                          const Tensor& normalizer, const Tensor& entropy, const Tensor& g_score,
                          const Tensor& g_entropy) {
  const bool chaos = g_entropy.defined();
  kernels::vocabulary_gradient(real_of(logits), logits.data_ptr(), target.data_ptr<std::int64_t>(),
                               static_cast<float>(temperature), normalizer.data_ptr<float>(),
                               chaos ? entropy.data_ptr<float>() : nullptr,
                               g_score.data_ptr<float>(),
                               chaos ? g_entropy.data_ptr<float>() : nullptr, logits.size(0),
                               logits.size(1), stream_for(logits));
}

bool attention_usable(torch::Device device, at::ScalarType type, std::int64_t head_dim) {
  return enabled && device.is_cuda() && type == at::kBFloat16 && head_dim % 8 == 0 &&
         head_dim <= 128 && kernels::PackedAttention::available();
}

AttentionBatch attention_batch(const std::vector<std::int64_t>& lengths, torch::Device device) {
  const Packing packing = packing_of(lengths, device);
  return {packing.lengths, packing.starts, packing.longest, packing.tokens, {}, {}, 0, 0};
}

void set_keys(AttentionBatch& batch, const std::vector<std::int64_t>& lengths,
              torch::Device device) {
  const Packing packing = packing_of(lengths, device);
  batch.key_lengths = packing.lengths;
  batch.key_starts = packing.starts;
  batch.longest_keys = packing.longest;
  batch.keys = packing.tokens;
}

Attended attend(const AttentionBatch& batch, const Tensor& q, const Tensor& k, const Tensor& v,
                std::int64_t window) {
  const kernels::AttentionShape shape = shape_of(batch, q, k, v, window);
  kernels::PackedAttention& attention = attention_of(q);
  Attended result{empty_of(q, q.sizes()), fp32_like(q, {q.size(0), q.size(1)})};
  const Offsets offsets = offsets_of(batch, shape);
  const Tensor scratch = workspace(q, attention.workspace_bytes(shape, false));
  attention.forward(shape, pointers(batch, offsets), q.data_ptr(), k.data_ptr(), v.data_ptr(),
                    result.out.data_ptr(), result.stats.data_ptr(), scratch.data_ptr(),
                    stream_for(q));
  return result;
}

HeadGradients attend_backward(const AttentionBatch& batch, const Tensor& q, const Tensor& k,
                              const Tensor& v, const Tensor& out, const Tensor& stats,
                              const Tensor& gradient, std::int64_t window) {
  kernels::AttentionShape shape = shape_of(batch, q, k, v, window);
  shape.deterministic = deterministic;
  kernels::PackedAttention& attention = attention_of(q);
  const Tensor g = gradient.contiguous();
  HeadGradients result{empty_of(q, q.sizes()), empty_of(k, k.sizes()), empty_of(v, v.sizes())};
  const Offsets offsets = offsets_of(batch, shape);
  const Tensor scratch = workspace(q, attention.workspace_bytes(shape, true));
  attention.backward(shape, pointers(batch, offsets), q.data_ptr(), k.data_ptr(), v.data_ptr(),
                     out.data_ptr(), stats.data_ptr(), g.data_ptr(), result.q.data_ptr(),
                     result.k.data_ptr(), result.v.data_ptr(), scratch.data_ptr(), stream_for(q));
  return result;
}

Tensor chunk_table(const std::vector<Chunk>& chunks, torch::Device device) {
  return placed_chunk_table({chunks.begin(), chunks.end()}, device);
}

Tensor placed_chunk_table(const std::vector<PlacedChunk>& chunks, torch::Device device,
                          std::int64_t largest) {
  if (largest <= 0) largest = kernels::kLargestChunk;
  std::vector<kernels::FlatChunk> cut;
  for (const auto& [chunk, shift] : chunks) {
    for (std::int64_t first = 0; first < chunk.count; first += largest) {
      cut.push_back({chunk.offset + first, std::min(largest, chunk.count - first),
                     static_cast<float>(chunk.decay), shift});
    }
  }
  const auto bytes = static_cast<std::int64_t>(cut.size() * sizeof(kernels::FlatChunk));
  const Tensor host = torch::empty({bytes}, at::kByte);
  if (bytes > 0) std::memcpy(host.data_ptr(), cut.data(), static_cast<std::size_t>(bytes));
  return host.to(device);
}

Tensor sum_of_squares(const Tensor& x, const Tensor& table) {
  Tensor sum = torch::zeros({}, x.options());
  const Tensor partial = fp32_like(x, {std::max<std::int64_t>(count_of(table), 1)});
  kernels::sum_of_squares(x.data_ptr<float>(), chunks_of(table), count_of(table),
                          partial.data_ptr<float>(), sum.data_ptr<float>(), stream_for(x));
  return sum;
}

void sum_parts(const Tensor& y, const std::vector<Tensor>& parts, bool keep) {
  constexpr auto most = static_cast<std::size_t>(kernels::kMostSources);
  for (std::size_t first = 0; first < parts.size(); first += most) {
    const void* sources[most] = {};
    const std::size_t count = std::min(most, parts.size() - first);
    for (std::size_t i = 0; i < count; ++i) sources[i] = parts[first + i].data_ptr();
    kernels::sum_sources(real_of(y), sources, static_cast<int>(count), y.numel(), keep || first > 0,
                         y.data_ptr(), stream_for(y));
  }
}

void adamw(const AdamWStep& o, const Tensor& table, const Tensor& squares, const Tensor& gradient,
           const Tensor& master, const Tensor& exp_avg, const Tensor& exp_avg_sq,
           const Tensor& param) {
  const auto step = static_cast<double>(o.step);
  const kernels::AdamW options{.learning_rate = static_cast<float>(o.learning_rate),
                               .beta1 = static_cast<float>(o.beta1),
                               .beta2 = static_cast<float>(o.beta2),
                               .eps = static_cast<float>(o.eps),
                               .correction1 = static_cast<float>(1 - std::pow(o.beta1, step)),
                               .correction2 = static_cast<float>(1 - std::pow(o.beta2, step)),
                               .clip_norm = static_cast<float>(o.clip_norm)};
  kernels::adamw(options, chunks_of(table), count_of(table), squares.data_ptr<float>(),
                 gradient.data_ptr<float>(), master.data_ptr<float>(), exp_avg.data_ptr<float>(),
                 exp_avg_sq.data_ptr<float>(), data_of(param), stream_for(master));
}

#endif

}  // namespace tessera::fused
