#include "executor/model/layer_ops.h"

#include <ATen/ops/_fused_rms_norm.h>
#include <ATen/ops/_fused_rms_norm_backward.h>

#include <array>
#include <functional>
#include <optional>

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
  if (x.is_cuda()) {
    const auto [y, r] = at::_fused_rms_norm(x, {x.size(1)}, weight, epsilon);
    return {y, r};
  }
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
  return {(wide * r).mul_(weight.to(at::kFloat)).to(x.scalar_type()), r};
}

struct RmsNorm : torch::autograd::Function<RmsNorm> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        double epsilon) {
    const Normed out = norm_forward(x, weight, epsilon);
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

/// Tensors stacked along dim 0: without a copy where they adjoin in one arena (q|k|v, gate|up).
Tensor stacked(at::TensorList parts) {
  if (parts.size() == 1) return parts[0];
  std::vector<std::int64_t> shape = parts[0].sizes().vec();
  shape[0] = 0;
  bool adjoin = true;
  std::int64_t end = parts[0].storage_offset();
  for (const Tensor& part : parts) {
    adjoin = adjoin && part.is_alias_of(parts[0]) && part.storage_offset() == end;
    end += part.numel();
    shape[0] += part.size(0);
  }
  if (!adjoin) return torch::cat(parts);
  return torch::empty({0}, parts[0].options())
      .set_(parts[0].storage(), parts[0].storage_offset(), shape, c10::contiguous_strides(shape));
}

/// The columns of y that belong to each weight; they share y's memory but are no views of it, so
/// that each may be an output of its own for autograd.
variable_list column_blocks(const Tensor& y, at::TensorList weights) {
  variable_list blocks;
  std::int64_t first = y.storage_offset();
  for (const Tensor& weight : weights) {
    blocks.push_back(torch::empty({0}, y.options())
                         .set_(y.storage(), first, {y.size(0), weight.size(0)}, y.strides()));
    first += weight.size(0);
  }
  return blocks;
}

variable_list project_columns(const Tensor& x, at::TensorList weights, at::TensorList biases) {
  const Tensor weight = stacked(weights).t();
  const Tensor y = biases.empty() ? at::mm(x, weight) : at::addmm(stacked(biases), x, weight);
  return column_blocks(y, weights);
}

struct ColumnParallel : torch::autograd::Function<ColumnParallel> {
  static variable_list forward(AutogradContext* context, const Tensor& x, at::TensorList weights,
                               at::TensorList biases, Communicator* tp) {
    variable_list saved{x};
    saved.insert(saved.end(), weights.begin(), weights.end());
    context->save_for_backward(std::move(saved));
    context->saved_data["tp"] = reinterpret_cast<std::int64_t>(tp);
    context->saved_data["biased"] = !biases.empty();
    return project_columns(x, weights, biases);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor& x = saved[0];
    const at::TensorList weights = at::TensorList(saved).slice(1);
    const std::size_t count = weights.size();
    std::vector<std::int64_t> rows;
    for (const Tensor& weight : weights) rows.push_back(weight.size(0));
    const Tensor g = torch::cat(gradients, 1);
    variable_list result;
    result.push_back(context->needs_input_grad(0) ? at::mm(g, stacked(weights)) : Tensor());
    if (result[0].defined()) {
      all_reduce_(result[0], reinterpret_cast<Communicator*>(context->saved_data["tp"].toInt()));
    }
    const auto append = [&](std::size_t first, const std::function<Tensor()>& whole) {
      if (!context->needs_input_grad(first)) {
        result.resize(result.size() + count);
        return;
      }
      for (const Tensor& part : whole().split_with_sizes(rows)) result.push_back(part);
    };
    append(1, [&] { return at::mm(g.t(), x); });
    if (context->saved_data["biased"].toBool()) append(1 + count, [&] { return g.sum(0); });
    result.emplace_back();
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
                        const std::optional<Tensor>& bias, Communicator* tp) {
    context->save_for_backward({x, weight});
    context->saved_data["biased"] = bias.has_value();
    return project_rows(x, weight, bias.value_or(Tensor()), tp);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor& g = gradients[0];
    variable_list result(4);
    if (context->needs_input_grad(0)) result[0] = at::mm(g, saved[1].t());
    if (context->needs_input_grad(1)) result[1] = at::mm(saved[0].t(), g);
    if (context->saved_data["biased"].toBool()) result[2] = g.sum(0);
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
  return norm_forward(x, weight, epsilon).y;
}

Projections column_parallel(const Tensor& x, const Projections& w, const Projections& b,
                            Communicator* tp) {
  variable_list weights{w.a, w.b}, biases;
  if (b.a.defined()) biases = {b.a, b.b};
  if (w.c.defined()) {
    weights.push_back(w.c);
    if (b.a.defined()) biases.push_back(b.c);
  }
  const variable_list out =
      recording({&x, &w.a, &w.b, &w.c})
          ? ColumnParallel::apply(x, at::TensorList(weights), at::TensorList(biases), tp)
          : project_columns(x, weights, biases);
  return {out[0], out[1], w.c.defined() ? out[2] : Tensor()};
}

Tensor row_parallel(const Tensor& x, const Tensor& weight, const Tensor& bias, Communicator* tp) {
  if (recording({&x, &weight})) {
    const auto present = bias.defined() ? std::optional(bias) : std::nullopt;
    return RowParallel::apply(x, weight, present, tp);
  }
  return project_rows(x, weight, bias, tp);
}

Tensor swiglu(const Tensor& gate, const Tensor& up) {
  return recording({&gate, &up}) ? SwiGlu::apply(gate, up) : at::silu(gate).mul_(up);
}

}  // namespace tessera
