#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "executor/kernels/packed_attention.h"
#include "executor/tensor/fused.h"
#include "executor/tensor/fused_settings.h"
#include "executor/tensor/kernel_calls.h"
#include "executor/tensor/to_device.h"

namespace tessera::fused {
namespace {

using torch::Tensor;

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

}  // namespace

bool attention_usable(torch::Device device, at::ScalarType type, std::int64_t head_dim) {
  return enabled() && device.is_cuda() && type == at::kBFloat16 && head_dim % 8 == 0 &&
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
  shape.deterministic = deterministic();
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

}  // namespace tessera::fused
