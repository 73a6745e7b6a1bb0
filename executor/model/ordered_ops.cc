#include "executor/model/ordered_ops.h"

#include <ATen/Parallel.h>

#include <cmath>

#include "cost_models/documents/check.h"
#include "executor/model/ordered_products.h"
#include "executor/model/paged_kernels.h"
#include "executor/ordered/ordered_loops.h"
#include "executor/rl/sampling.h"

namespace tessera {
namespace {

using torch::Tensor;

bool plain(const Tensor& x) { return x.is_cpu() && x.scalar_type() == at::kFloat; }

}  // namespace

Tensor ordered_product(const Tensor& x, const Tensor& weight, std::optional<at::ScalarType> type) {
  if (x.is_cuda()) return ordered_products::on_gpu(x, weight, type.value_or(x.scalar_type()));
  TESSERA_CHECK(plain(x) && plain(weight));
  const Tensor in = x.stride(1) == 1 ? x : x.contiguous();
  Tensor y = torch::empty({x.size(0), weight.size(1)}, x.options());
  const ProductShape shape{.rows = x.size(0),
                           .inputs = x.size(1),
                           .outputs = weight.size(1),
                           .x_stride = in.stride(0),
                           .y_stride = weight.size(1)};
  if (weight.stride(0) == 1 && weight.stride(1) == weight.size(0)) {
    ordered_dots(shape, in.const_data_ptr<float>(), weight.const_data_ptr<float>(),
                 y.data_ptr<float>(), at::get_num_threads());
  } else {
    TESSERA_CHECK(weight.stride(1) == 1);
    ordered_sums(shape, in.const_data_ptr<float>(), weight.const_data_ptr<float>(),
                 weight.stride(0), y.data_ptr<float>(), at::get_num_threads());
  }
  return y;
}

Tensor ordered_swiglu(const Tensor& gate, const Tensor& up) {
  TESSERA_CHECK(plain(gate) && gate.stride(1) == 1 && up.stride(1) == 1 &&
                gate.stride(0) == up.stride(0));
  Tensor y = torch::empty(gate.sizes(), gate.options());
  ordered_swiglu(gate.const_data_ptr<float>(), up.const_data_ptr<float>(), gate.stride(0),
                 gate.size(0), gate.size(1), y.data_ptr<float>(), at::get_num_threads());
  return y;
}

RopeTable ordered_rope_table(const Tensor& frequencies, double attention_factor,
                             const Tensor& positions, at::ScalarType dtype) {
  if (!positions.is_cpu()) return rope_table(frequencies, attention_factor, positions, dtype);
  const Tensor places = positions.contiguous(), turns = frequencies.contiguous();
  const std::int64_t half = turns.numel();
  Tensor cos = torch::empty({places.numel(), half}, torch::kFloat), sin = torch::empty_like(cos);
  const auto factor = static_cast<float>(attention_factor);
  for (std::int64_t t = 0; t < places.numel(); ++t) {
    for (std::int64_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(places.const_data_ptr<std::int64_t>()[t]) *
                          turns.const_data_ptr<float>()[i];
      cos.data_ptr<float>()[t * half + i] = std::cos(angle) * factor;
      sin.data_ptr<float>()[t * half + i] = std::sin(angle) * factor;
    }
  }
  return {cos.to(dtype), sin.to(dtype)};
}

Tensor drawn_log_probs(const Tensor& logits, const Tensor& tokens, double temperature) {
  if (logits.is_cuda()) return fused::drawn_log_probs(temperature, logits, tokens);
  const Tensor rows = logits.contiguous(), drawn = tokens.contiguous();
  Tensor scores = torch::empty({logits.size(0)}, torch::kFloat);
  for (std::int64_t row = 0; row < logits.size(0); ++row) {
    scores.data_ptr<float>()[row] = drawn_log_prob(
        {rows.const_data_ptr<float>() + row * logits.size(1),
         static_cast<std::size_t>(logits.size(1))},
        static_cast<std::size_t>(drawn.const_data_ptr<std::int64_t>()[row]), temperature);
  }
  return scores;
}

}  // namespace tessera
