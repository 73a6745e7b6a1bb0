#include "executor/tensor/fused.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "executor/tensor/fused_settings.h"
#include "executor/tensor/kernel_calls.h"
#include "executor/tensor/placed_chunks.h"

namespace tessera::fused {
namespace {

using torch::Tensor;

const kernels::FlatChunk* chunks_of(const Tensor& table) {
  return static_cast<const kernels::FlatChunk*>(table.data_ptr());
}
std::int64_t count_of(const Tensor& table) {
  return table.numel() / static_cast<std::int64_t>(sizeof(kernels::FlatChunk));
}

}  // namespace

bool usable(const Tensor& x) {
  return enabled() && x.is_cuda() &&
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
  constexpr auto kMost = static_cast<std::size_t>(kernels::kMostSources);
  for (std::size_t first = 0; first < parts.size(); first += kMost) {
    const void* sources[kMost] = {};
    const std::size_t count = std::min(kMost, parts.size() - first);
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

}  // namespace tessera::fused
