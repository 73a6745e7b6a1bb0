#include "executor/tensor/norm_ops.h"

#include <ATen/ops/_fused_rms_norm.h>
#include <ATen/ops/_fused_rms_norm_backward.h>

#include <array>
#include <optional>

#include "executor/tensor/cpu_kernels.h"
#include "executor/tensor/fused.h"
#include "executor/tensor/gradient_products.h"

namespace tessera {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

bool plain_cpu(const Tensor& x) { return x.is_cpu() && x.scalar_type() == at::kFloat; }

struct Normed {
  Tensor sum, y, r;  // r: fp32 [tokens, 1]
};

Normed norm_forward(const Tensor& x, const Tensor& residual, const Tensor& weight, double epsilon) {
  if (fused::usable(x)) {
    const fused::Normed out = fused::rms_norm(x, residual, weight, epsilon);
    return {out.sum, out.y, out.r};
  }
  const Tensor in = residual.defined() ? x + residual : x;
  if (in.is_cuda()) {
    const auto [y, r] = at::_fused_rms_norm(in, {in.size(1)}, weight, epsilon);
    return {in, y, r};
  }
  if (plain_cpu(in)) {
    const Tensor rows = in.contiguous();
    Normed out{rows, torch::empty(in.sizes(), in.options()),
               torch::empty({in.size(0), 1}, in.options())};
    rms_norm_rows(rows.const_data_ptr<float>(), weight.const_data_ptr<float>(),
                  static_cast<float>(epsilon), in.size(0), in.size(1), out.y.data_ptr<float>(),
                  out.r.data_ptr<float>());
    return out;
  }
  const Tensor wide = in.to(at::kFloat);
  const Tensor r = wide.square().mean(-1, true).add_(epsilon).rsqrt_();
  return {in, (wide * r).mul_(weight.to(at::kFloat)).to(in.scalar_type()), r};
}

/// Gradient by x; adds the weight's to the fp32 `d_weight`.
Tensor norm_backward(const Tensor& gradient, const Tensor& passed, const Tensor& x,
                     const Tensor& weight, const Tensor& r, const Tensor& d_weight) {
  if (fused::usable(x)) {
    return fused::rms_norm_backward(gradient, passed, x, weight, r, d_weight);
  }
  const Tensor g = gradient.contiguous();
  Tensor dx;
  if (x.is_cuda()) {
    const auto [by_x, by_weight] =
        at::_fused_rms_norm_backward(g, x, {x.size(1)}, r, weight, std::array<bool, 2>{true, true});
    dx = by_x;
    d_weight.add_(by_weight);
  } else if (plain_cpu(x)) {
    dx = torch::empty(x.sizes(), x.options());
    rms_norm_rows_backward(g.const_data_ptr<float>(), x.const_data_ptr<float>(),
                           weight.const_data_ptr<float>(), r.const_data_ptr<float>(), x.size(0),
                           x.size(1), dx.data_ptr<float>(), d_weight.data_ptr<float>());
  } else {
    const Tensor wide = g.to(at::kFloat), unit = x.to(at::kFloat) * r;
    const Tensor gw = wide * weight.to(at::kFloat);
    dx = ((gw - unit * (gw * unit).mean(-1, true)) * r).to(x.scalar_type());
    d_weight.add_((wide * unit).sum(0));
  }
  return passed.defined() ? dx.add_(passed) : dx;
}

/// Outputs: the norm, and with a residual the sum before it.
struct RmsNorm : torch::autograd::Function<RmsNorm> {
  static variable_list forward(AutogradContext* context, const Tensor& x,
                               const std::optional<Tensor>& residual, const Tensor& weight,
                               double epsilon) {
    const Normed out = norm_forward(x, residual.value_or(Tensor()), weight, epsilon);
    context->save_for_backward({out.sum, weight, out.r});
    context->saved_data["residual"] = residual.has_value();
    if (residual) return {out.y, out.sum};
    return {out.y};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], &r = saved[2];
    const auto buffer = gradient_buffer(weight);
    const Tensor d_weight =
        buffer ? *buffer : torch::zeros(weight.sizes(), weight.options().dtype(at::kFloat));
    const bool residual = context->saved_data["residual"].toBool();
    const Tensor dx =
        norm_backward(gradients[0], residual ? gradients[1] : Tensor(), x, weight, r, d_weight);
    return {dx, residual ? dx : Tensor(), buffer ? Tensor() : d_weight.to(weight.scalar_type()),
            Tensor()};
  }
};

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& weight, double epsilon) {
  if (recording({&x, &weight})) return RmsNorm::apply(x, std::nullopt, weight, epsilon)[0];
  return norm_forward(x, {}, weight, epsilon).y;
}

ResidualNorm add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& weight,
                          double epsilon) {
  if (recording({&x, &residual, &weight})) {
    const variable_list out = RmsNorm::apply(x, std::optional(residual), weight, epsilon);
    return {out[1], out[0]};
  }
  const Normed out = norm_forward(x, residual, weight, epsilon);
  return {out.sum, out.y};
}

}  // namespace tessera
