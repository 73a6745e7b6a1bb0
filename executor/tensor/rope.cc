#include "executor/tensor/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "cost_models/documents/problem.h"
#include "executor/tensor/cpu_kernels.h"
#include "executor/tensor/fused.h"

namespace tessera {
namespace {

torch::Tensor llama3_frequencies(const RopeSpec& rope, const torch::Tensor& plain) {
  const double context = static_cast<double>(rope.original_max_position_embeddings);
  const double low = context / rope.low_freq_factor, high = context / rope.high_freq_factor;
  const torch::Tensor wavelength = 2 * std::numbers::pi / plain;
  const torch::Tensor scaled = torch::where(wavelength > low, plain / rope.factor, plain);
  const torch::Tensor smooth = (context / wavelength - rope.low_freq_factor) /
                               (rope.high_freq_factor - rope.low_freq_factor);
  const torch::Tensor between = (1 - smooth) * scaled / rope.factor + smooth * scaled;
  const torch::Tensor is_between = ~(wavelength < high) * ~(wavelength > low);
  return torch::where(is_between, between, scaled);
}

torch::Tensor yarn_frequencies(const RopeSpec& rope, std::int64_t dim, const torch::Tensor& base) {
  const auto correction_dim = [&](double rotations) {
    const double context = static_cast<double>(rope.original_max_position_embeddings);
    return static_cast<double>(dim) * std::log(context / (rotations * 2 * std::numbers::pi)) /
           (2 * std::log(rope.theta));
  };
  double low = correction_dim(rope.beta_fast), high = correction_dim(rope.beta_slow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(dim - 1));
  if (low == high) high += 0.001;
  const torch::Tensor ramp =
      torch::clamp((torch::arange(dim / 2, torch::kFloat) - low) / (high - low), 0, 1);
  const torch::Tensor keep = 1 - ramp;
  return (1.0 / (rope.factor * base)) * (1 - keep) + (1.0 / base) * keep;
}

torch::Tensor rotate(const torch::Tensor& x, const torch::Tensor& cos, const torch::Tensor& sin,
                     bool back) {
  const std::int64_t half = x.size(2) / 2;
  torch::Tensor y = torch::empty(x.sizes(), x.options());
  if (x.is_cpu() && x.scalar_type() == at::kFloat) {
    const bool heads_adjoin = x.stride(2) == 1 && x.stride(1) == x.size(2);
    const torch::Tensor in = heads_adjoin ? x : x.contiguous();
    rotate_heads(in.const_data_ptr<float>(), in.stride(0), cos.const_data_ptr<float>(),
                 sin.const_data_ptr<float>(), back ? -1.0F : 1.0F, x.size(0), x.size(1), half,
                 y.data_ptr<float>());
    return y;
  }
  const torch::Tensor x1 = x.narrow(2, 0, half), x2 = x.narrow(2, half, half);
  const torch::Tensor c = cos.unsqueeze(1), s = sin.unsqueeze(1);
  torch::Tensor y1 = y.narrow(2, 0, half), y2 = y.narrow(2, half, half);
  at::mul_out(y1, x1, c);
  y1.addcmul_(x2, s, back ? 1 : -1);
  at::mul_out(y2, x2, c);
  y2.addcmul_(x1, s, back ? -1 : 1);
  return y;
}

torch::Tensor turned(const torch::Tensor& x, const torch::Tensor& cos, const torch::Tensor& sin,
                     bool back) {
  return fused::usable(x) ? fused::rotate(x, cos, sin, back) : rotate(x, cos, sin, back);
}

struct Rotation : torch::autograd::Function<Rotation> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               const torch::Tensor& cos, const torch::Tensor& sin) {
    context->save_for_backward({cos, sin});
    return turned(x, cos, sin, false);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    return {turned(gradients[0], saved[0], saved[1], true), torch::Tensor(), torch::Tensor()};
  }
};

}  // namespace

torch::Tensor rope_frequencies(const RopeSpec& rope, std::int64_t head_dim) {
  const torch::Tensor exponents =
      torch::arange(0, head_dim, 2, torch::kInt64).to(torch::kFloat) / head_dim;
  const torch::Tensor base = torch::pow(rope.theta, exponents);
  const torch::Tensor plain = 1.0 / base;
  switch (rope.kind) {
    case RopeScalingKind::none:
      return plain;
    case RopeScalingKind::linear:
      return plain / rope.factor;
    case RopeScalingKind::llama3:
      return llama3_frequencies(rope, plain);
    case RopeScalingKind::yarn:
      return yarn_frequencies(rope, head_dim, base);
    case RopeScalingKind::longrope:
      throw Error(ExitCode::infeasible, "longrope scaling of rotary positions is not executed");
  }
  return plain;
}

RopeTable rope_table(const torch::Tensor& frequencies, double attention_factor,
                     const torch::Tensor& positions, at::ScalarType dtype) {
  const torch::Tensor angles = positions.to(at::kFloat).unsqueeze(1) * frequencies.unsqueeze(0);
  torch::Tensor cos = angles.cos(), sin = angles.sin();
  if (attention_factor != 1.0) {
    cos.mul_(attention_factor);
    sin.mul_(attention_factor);
  }
  return {cos.to(dtype), sin.to(dtype)};
}

torch::Tensor apply_rope(const torch::Tensor& x, const RopeTable& table) {
  if (!at::GradMode::is_enabled() || !x.requires_grad()) {
    return turned(x, table.cos, table.sin, false);
  }
  return Rotation::apply(x, table.cos, table.sin);
}

}  // namespace tessera
