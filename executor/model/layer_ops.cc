#include "executor/model/layer_ops.h"

#include <ATen/ops/_fused_rms_norm.h>
#include <ATen/ops/_fused_rms_norm_backward.h>

#include <array>

#include "executor/model/cpu_kernels.h"
#include "executor/model/parallel_ops.h"

namespace tessera {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

bool plain_cpu(const Tensor& x) { return x.is_cpu() && x.scalar_type() == at::kFloat; }

bool recording(std::initializer_list<const Tensor*> inputs) {
  if (!at::GradMode::is_enabled()) return false;
  for (const Tensor* x : inputs) {
    if (x->defined() && x->requires_grad()) return true;
  }
  return false;
}

struct Normed {
  Tensor y, r;  // r: fp32 [tokens, 1]
};

Normed norm_forward(const Tensor& x, const Tensor& weight, double epsilon) {
  if (plain_cpu(x)) {
    const Tensor in = x.contiguous();
    Normed out{torch::empty(in.sizes(), in.options()), torch::empty({in.size(0), 1}, in.options())};
    rms_norm_rows(in.const_data_ptr<float>(), weight.const_data_ptr<float>(),
                  static_cast<float>(epsilon), in.size(0), in.size(1), out.y.data_ptr<float>(),
                  out.r.data_ptr<float>());
    return out;
  }
  const Tensor wide = x.to(at::kFloat);
  const Tensor r = wide.square().mean(-1, true).add_(epsilon).rsqrt_();
  return {(wide * r).to(x.scalar_type()).mul_(weight), r};
}

struct RmsNorm : torch::autograd::Function<RmsNorm> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        double epsilon) {
    Normed out;
    if (x.is_cuda()) {
      std::tie(out.y, out.r) = at::_fused_rms_norm(x, {x.size(1)}, weight, epsilon);
    } else {
      out = norm_forward(x, weight, epsilon);
    }
    context->save_for_backward({x, weight, out.r});
    return out.y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], &r = saved[2];
    const Tensor gradient = gradients[0].contiguous();
    if (x.is_cuda()) {
      auto [dx, dw] = at::_fused_rms_norm_backward(gradient, x, {x.size(1)}, r, weight,
                                                   std::array<bool, 2>{true, true});
      return {dx, dw, Tensor()};
    }
    if (plain_cpu(x)) {
      const Tensor in = x.contiguous();
      Tensor dx = torch::empty(in.sizes(), in.options()), dw = torch::zeros_like(weight);
      rms_norm_rows_backward(gradient.const_data_ptr<float>(), in.const_data_ptr<float>(),
                             weight.const_data_ptr<float>(), r.const_data_ptr<float>(), in.size(0),
                             in.size(1), dx.data_ptr<float>(), dw.data_ptr<float>());
      return {dx, dw, Tensor()};
    }
    const Tensor g = gradient.to(at::kFloat), unit = x.to(at::kFloat) * r;
    const Tensor gw = g * weight.to(at::kFloat);
    const Tensor dx = (gw - unit * (gw * unit).mean(-1, true)) * r;
    return {dx.to(x.scalar_type()), (g * unit).sum(0).to(weight.scalar_type()), Tensor()};
  }
};

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return bias.defined() ? at::addmm(bias, x, weight.t()) : at::mm(x, weight.t());
}

struct ColumnParallel : torch::autograd::Function<ColumnParallel> {
  static variable_list forward(AutogradContext* context, const Tensor& x, const Tensor& wa,
                               const Tensor& wb, const Tensor& wc, const Tensor& ba,
                               const Tensor& bb, const Tensor& bc, Communicator* tp) {
    context->save_for_backward({x, wa, wb, wc});
    context->saved_data["tp"] = reinterpret_cast<std::int64_t>(tp);
    context->saved_data["bias"] = ba.defined();
    variable_list out{linear(x, wa, ba), linear(x, wb, bb)};
    if (wc.defined()) out.push_back(linear(x, wc, bc));
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    auto* tp = reinterpret_cast<Communicator*>(context->saved_data["tp"].toInt());
    const bool biased = context->saved_data["bias"].toBool();
    const Tensor& x = saved[0];
    variable_list result(8);
    Tensor dx = context->needs_input_grad(0) ? torch::zeros({0}, x.options()) : Tensor();
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const Tensor &g = gradients[i], &weight = saved[i + 1];
      if (!g.defined()) continue;
      if (dx.defined()) dx = dx.numel() == 0 ? at::mm(g, weight) : dx.addmm_(g, weight);
      if (context->needs_input_grad(i + 1)) result[i + 1] = at::mm(g.t(), x);
      if (biased && context->needs_input_grad(i + 4)) result[i + 4] = g.sum(0);
    }
    if (dx.defined()) {
      all_reduce_(dx, tp);
      result[0] = dx;
    }
    return result;
  }
};

Tensor project_rows(const Tensor& x, const Tensor& weight, const Tensor& bias, Communicator* tp) {
  Tensor y = at::mm(x, weight);
  all_reduce_(y, tp);
  if (bias.defined()) y.add_(bias);
  return y;
}

struct RowParallel : torch::autograd::Function<RowParallel> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const Tensor& bias, Communicator* tp) {
    context->save_for_backward({x, weight});
    return project_rows(x, weight, bias, tp);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor& g = gradients[0];
    variable_list result(4);
    if (context->needs_input_grad(0)) result[0] = at::mm(g, saved[1].t());
    if (context->needs_input_grad(1)) result[1] = at::mm(saved[0].t(), g);
    if (context->needs_input_grad(2)) result[2] = g.sum(0);
    return result;
  }
};

struct SwiGlu : torch::autograd::Function<SwiGlu> {
  static Tensor forward(AutogradContext* context, const Tensor& gate, const Tensor& up) {
    context->save_for_backward({gate, up});
    return at::silu(gate).mul_(up);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &g = gradients[0], &gate = saved[0], &up = saved[1];
    return {at::silu_backward(g * up, gate), at::silu(gate).mul_(g)};
  }
};

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& weight, double epsilon) {
  if (recording({&x, &weight})) return RmsNorm::apply(x, weight, epsilon);
  if (x.is_cuda()) return std::get<0>(at::_fused_rms_norm(x, {x.size(1)}, weight, epsilon));
  return norm_forward(x, weight, epsilon).y;
}

Projections column_parallel(const Tensor& x, const Projections& w, const Projections& b,
                            Communicator* tp) {
  if (recording({&x, &w.a, &w.b, &w.c})) {
    const variable_list out = ColumnParallel::apply(x, w.a, w.b, w.c, b.a, b.b, b.c, tp);
    return {out[0], out[1], out.size() > 2 ? out[2] : Tensor()};
  }
  return {linear(x, w.a, b.a), linear(x, w.b, b.b), w.c.defined() ? linear(x, w.c, b.c) : Tensor()};
}

Tensor row_parallel(const Tensor& x, const Tensor& weight, const Tensor& bias, Communicator* tp) {
  if (recording({&x, &weight})) return RowParallel::apply(x, weight, bias, tp);
  return project_rows(x, weight, bias, tp);
}

Tensor swiglu(const Tensor& gate, const Tensor& up) {
  return recording({&gate, &up}) ? SwiGlu::apply(gate, up) : at::silu(gate).mul_(up);
}

}  // namespace tessera
