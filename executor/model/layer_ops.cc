#include "executor/model/layer_ops.h"

#include <ATen/ops/_fused_rms_norm.h>
#include <ATen/ops/_fused_rms_norm_backward.h>

#include <array>
#include <functional>
#include <optional>

#include "executor/model/cpu_kernels.h"
#include "executor/model/fused.h"
#include "executor/model/token_exchange.h"

namespace tessera {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

thread_local bool overwriting = false;

bool plain_cpu(const Tensor& x) { return x.is_cpu() && x.scalar_type() == at::kFloat; }

bool recording(std::initializer_list<const Tensor*> inputs) {
  if (!at::GradMode::is_enabled()) return false;
  for (const Tensor* x : inputs) {
    if (x->defined() && x->requires_grad()) return true;
  }
  return false;
}

/// Several tensors as one that shares their memory, stacked along dim 0, where they adjoin in one
/// arena (q|k|v, gate|up).
std::optional<Tensor> adjoined(at::TensorList parts) {
  std::vector<std::int64_t> shape = parts[0].sizes().vec();
  shape[0] = 0;
  std::int64_t end = parts[0].storage_offset();
  for (const Tensor& part : parts) {
    if (!part.is_alias_of(parts[0]) || part.storage_offset() != end) return std::nullopt;
    end += part.numel();
    shape[0] += part.size(0);
  }
  return torch::empty({0}, parts[0].options().requires_grad(false))
      .set_(parts[0].storage(), parts[0].storage_offset(), shape, c10::contiguous_strides(shape));
}

Tensor stacked(at::TensorList parts) {
  if (parts.size() == 1) return parts[0];
  const auto whole = adjoined(parts);
  return whole ? *whole : torch::cat(parts);
}

/// Column blocks of one matrix side by side: without a copy where they are that already.
Tensor side_by_side(at::TensorList blocks) {
  const std::int64_t rows = blocks[0].size(0);
  std::int64_t columns = 0, end = blocks[0].storage_offset();
  bool adjoin = blocks[0].dim() == 2;
  for (const Tensor& block : blocks) {
    adjoin = adjoin && block.is_alias_of(blocks[0]) && block.storage_offset() == end &&
             block.stride(1) == 1 && block.stride(0) == blocks[0].stride(0);
    end += block.size(1);
    columns += block.size(1);
  }
  if (!adjoin || blocks[0].stride(0) != columns) return torch::cat(blocks, 1);
  return torch::empty({0}, blocks[0].options())
      .set_(blocks[0].storage(), blocks[0].storage_offset(), {rows, columns}, {columns, 1});
}

/// The gradients of `weights` (stacked along dim 0) are `make`'s: added to their buffers by `add`
/// where all have one, else made and appended to `result`. Appends one entry per weight.
void append_gradients(at::TensorList weights, bool needed, variable_list& result,
                      const std::function<Tensor()>& make,
                      const std::function<void(const Tensor&)>& add) {
  const std::size_t first = result.size();
  result.resize(first + weights.size());
  if (!needed) return;
  std::vector<Tensor> buffers;
  std::vector<std::int64_t> rows;
  for (const Tensor& weight : weights) {
    if (const auto buffer = gradient_buffer(weight)) buffers.push_back(*buffer);
    rows.push_back(weight.size(0));
  }
  const bool direct = buffers.size() == weights.size();
  if (const auto whole = direct ? adjoined(buffers) : std::nullopt) {
    add(*whole);
    return;
  }
  const std::vector<Tensor> parts = make().split_with_sizes(rows);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (direct && overwriting && buffers[i].dim() > 1) {
      buffers[i].copy_(parts[i]);
    } else if (direct) {
      buffers[i].add_(parts[i]);
    } else {
      result[first + i] = parts[i];
    }
  }
}

/// A replicated vector's gradient: the sum over rows.
void append_bias_gradients(at::TensorList biases, bool needed, const Tensor& g,
                           variable_list& result) {
  append_gradients(
      biases, needed, result, [&] { return g.sum(0); },
      [&](const Tensor& buffer) { buffer.add_(g.sum(0, false, at::kFloat)); });
}

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

/// What a parallel region works on: all rows, there or (with an exchange) on their way.
struct RegionInput {
  Tensor rows;  // undefined while on their way
  TokenExchange::Arriving arriving;
};

bool exchanges(std::int64_t own_tokens, const TensorParallel& tp) {
  return tp.cuts_tokens() && tp.exchange != nullptr && tp.exchange->pays(own_tokens);
}

RegionInput enter_region(const Tensor& x, const TensorParallel& tp) {
  if (exchanges(x.size(0), tp)) return {{}, tp.exchange->gather(x)};
  return {region_input(x, tp), {}};
}

/// All rows, once they are there.
Tensor all_of(const RegionInput& input, const TensorParallel& tp) {
  if (input.rows.defined()) return input.rows;
  tp.exchange->await(input.arriving);
  return input.arriving.all;
}

Tensor product_of(const RegionInput& input, const Tensor& weight, const Tensor& bias,
                  const TensorParallel& tp) {
  if (!input.rows.defined()) return tp.exchange->product(input.arriving, weight, bias);
  return bias.defined() ? at::addmm(bias, input.rows, weight) : at::mm(input.rows, weight);
}

/// x times weight leaves the region: whole_sum of it.
Tensor summed_product(const Tensor& x, const Tensor& weight, const TensorParallel& tp) {
  if (tp.cuts_tokens() && exchanges(x.size(0) / tp.group->size(), tp)) {
    return tp.exchange->product_summed(x, weight);
  }
  return whole_sum(at::mm(x, weight), tp);
}

variable_list project_columns(const Tensor& x, at::TensorList weights, at::TensorList biases,
                              const TensorParallel& tp) {
  const Tensor bias = biases.empty() ? Tensor() : stacked(biases);
  return column_blocks(product_of(enter_region(x, tp), stacked(weights).t(), bias, tp), weights);
}

void keep(AutogradContext* context, const TensorParallel& tp) {
  context->saved_data["tp"] = reinterpret_cast<std::int64_t>(tp.group);
  context->saved_data["sequence"] = tp.sequence;
  context->saved_data["exchange"] = reinterpret_cast<std::int64_t>(tp.exchange);
}
TensorParallel kept(AutogradContext* context) {
  return {reinterpret_cast<Communicator*>(context->saved_data["tp"].toInt()),
          context->saved_data["sequence"].toBool(),
          reinterpret_cast<TokenExchange*>(context->saved_data["exchange"].toInt())};
}

struct ColumnParallel : torch::autograd::Function<ColumnParallel> {
  static variable_list forward(AutogradContext* context, const Tensor& x, at::TensorList weights,
                               at::TensorList biases, const TensorParallel& tp) {
    variable_list saved{x};
    saved.insert(saved.end(), weights.begin(), weights.end());
    saved.insert(saved.end(), biases.begin(), biases.end());
    context->save_for_backward(std::move(saved));
    context->saved_data["weights"] = static_cast<std::int64_t>(weights.size());
    keep(context, tp);
    return project_columns(x, weights, biases, tp);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const TensorParallel tp = kept(context);
    const auto count = static_cast<std::size_t>(context->saved_data["weights"].toInt());
    const at::TensorList weights = at::TensorList(saved).slice(1, count);
    const at::TensorList biases = at::TensorList(saved).slice(1 + count);
    const Tensor g = side_by_side(gradients);
    variable_list result(1);
    const bool needed = context->needs_input_grad(1);
    const RegionInput input = needed ? enter_region(saved[0], tp) : RegionInput();
    if (context->needs_input_grad(0)) result[0] = summed_product(g, stacked(weights), tp);
    const Tensor x = needed ? all_of(input, tp) : Tensor();
    append_gradients(
        weights, needed, result, [&] { return at::mm(g.t(), x); },
        [&](const Tensor& buffer) { add_product(buffer, g.t(), x); });
    append_bias_gradients(biases, !biases.empty() && context->needs_input_grad(1 + count), g,
                          result);
    result.emplace_back();
    return result;
  }
};

Tensor project_rows(const Tensor& x, const Tensor& weight, const Tensor& bias,
                    const TensorParallel& tp) {
  Tensor y = summed_product(x, weight, tp);
  if (bias.defined()) y.add_(bias);
  return y;
}

/// What both row-parallel nodes do with the weight's and the bias' gradients.
void append_row_gradients(AutogradContext* context, const Tensor& own_gradient, const Tensor& g,
                          const Tensor& x, const Tensor& weight, const Tensor& bias,
                          std::size_t weight_input, variable_list& result) {
  append_gradients(
      {weight}, context->needs_input_grad(weight_input), result, [&] { return at::mm(x.t(), g); },
      [&](const Tensor& buffer) { add_product(buffer, x.t(), g); });
  if (bias.defined()) {
    append_bias_gradients({bias}, context->needs_input_grad(weight_input + 1), own_gradient,
                          result);
  } else {
    result.emplace_back();
  }
}

struct RowParallel : torch::autograd::Function<RowParallel> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const std::optional<Tensor>& bias, const TensorParallel& tp) {
    context->save_for_backward({x, weight, bias.value_or(Tensor())});
    keep(context, tp);
    return project_rows(x, weight, bias.value_or(Tensor()), tp);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const TensorParallel tp = kept(context);
    const RegionInput input = enter_region(gradients[0], tp);
    variable_list result(1);
    if (context->needs_input_grad(0)) result[0] = product_of(input, saved[1].t(), {}, tp);
    const Tensor g = all_of(input, tp);
    append_row_gradients(context, gradients[0], g, saved[0], saved[1], saved[2], 1, result);
    result.emplace_back();
    return result;
  }
};

Tensor swiglu_forward(const Tensor& gate, const Tensor& up) {
  if (fused::usable(gate) && gate.stride(0) == up.stride(0)) return fused::swiglu(gate, up);
  return at::silu(gate).mul_(up);
}

variable_list swiglu_backward(const Tensor& g, const Tensor& gate, const Tensor& up) {
  if (fused::usable(gate) && gate.stride(0) == up.stride(0)) {
    const fused::GatePair d = fused::swiglu_backward(g, gate, up);
    return {d.gate, d.up};
  }
  return {at::silu_backward(g * up, gate), at::silu(gate).mul_(g)};
}

struct SwiGlu : torch::autograd::Function<SwiGlu> {
  static Tensor forward(AutogradContext* context, const Tensor& gate, const Tensor& up) {
    context->save_for_backward({gate, up});
    return swiglu_forward(gate, up);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    return swiglu_backward(gradients[0], saved[0], saved[1]);
  }
};

struct GatedRowParallel : torch::autograd::Function<GatedRowParallel> {
  static Tensor forward(AutogradContext* context, const Tensor& gate, const Tensor& up,
                        const Tensor& weight, const std::optional<Tensor>& bias,
                        const TensorParallel& tp, bool recompute) {
    const Tensor product = swiglu_forward(gate, up);
    context->save_for_backward(
        {gate, up, weight, bias.value_or(Tensor()), recompute ? Tensor() : product});
    keep(context, tp);
    return project_rows(product, weight, bias.value_or(Tensor()), tp);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &gate = saved[0], &up = saved[1], &weight = saved[2];
    const Tensor product = saved[4].defined() ? saved[4] : swiglu_forward(gate, up);
    const TensorParallel tp = kept(context);
    const RegionInput input = enter_region(gradients[0], tp);
    variable_list result = swiglu_backward(product_of(input, weight.t(), {}, tp), gate, up);
    const Tensor g = all_of(input, tp);
    append_row_gradients(context, gradients[0], g, product, weight, saved[3], 2, result);
    result.resize(6);
    return result;
  }
};

struct Embed : torch::autograd::Function<Embed> {
  static Tensor forward(AutogradContext* context, const Tensor& table, const Tensor& ids,
                        const std::optional<Tensor>& outside, const TensorParallel& tp) {
    context->save_for_backward({table, ids, outside.value_or(Tensor())});
    keep(context, tp);
    return looked_up(table, ids, outside.value_or(Tensor()), tp);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &table = saved[0], &ids = saved[1], &outside = saved[2];
    Tensor g = region_input(gradients[0], kept(context));
    if (outside.defined()) g = g.masked_fill(outside.unsqueeze(1), 0);
    if (const auto buffer = gradient_buffer(table)) {
      // By sorted ids: the same bits in every run.
      buffer->index_put_({ids}, g.to(at::kFloat), /*accumulate=*/true);
      return {Tensor(), Tensor(), Tensor(), Tensor()};
    }
    return {at::embedding_dense_backward(g, ids, table.size(0), -1, false), Tensor(), Tensor(),
            Tensor()};
  }
  static Tensor looked_up(const Tensor& table, const Tensor& ids, const Tensor& outside,
                          const TensorParallel& tp) {
    Tensor rows = at::embedding(table, ids);
    if (outside.defined()) rows.masked_fill_(outside.unsqueeze(1), 0);
    return whole_sum(rows, tp);
  }
};

std::optional<Tensor> present(const Tensor& x) {
  return x.defined() ? std::optional(x) : std::nullopt;
}

}  // namespace

std::optional<Tensor> gradient_buffer(const Tensor& weight) {
  if (!weight.is_leaf() || !weight.requires_grad()) return std::nullopt;
  const Tensor& buffer = weight.grad();
  if (!buffer.defined() || buffer.scalar_type() != at::kFloat || !buffer.is_contiguous()) {
    return std::nullopt;
  }
  return buffer;
}

void overwrite_matrix_gradients(bool on) { overwriting = on; }

void add_product(const Tensor& buffer, const Tensor& a, const Tensor& b) {
  Tensor out = buffer;
  if (overwriting) {
    if (a.scalar_type() == at::kFloat) {
      at::mm_out(out, a, b);
    } else if (a.is_cuda()) {
      at::mm_out(out, a, b, at::kFloat);
    } else {
      out.copy_(at::mm(a, b));
    }
    return;
  }
  if (a.scalar_type() == at::kFloat) {
    out.addmm_(a, b);
  } else if (a.is_cuda()) {
    at::addmm_out(out, out, a, b, at::kFloat);
  } else {
    out.add_(at::mm(a, b));
  }
}

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

Projections column_parallel(const Tensor& x, const Projections& w, const Projections& b,
                            const TensorParallel& tp) {
  variable_list weights{w.a, w.b}, biases;
  if (b.a.defined()) biases = {b.a, b.b};
  if (w.c.defined()) {
    weights.push_back(w.c);
    if (b.a.defined()) biases.push_back(b.c);
  }
  const variable_list out =
      recording({&x, &w.a, &w.b, &w.c})
          ? ColumnParallel::apply(x, at::TensorList(weights), at::TensorList(biases), tp)
          : project_columns(x, weights, biases, tp);
  return {out[0], out[1], w.c.defined() ? out[2] : Tensor()};
}

Tensor row_parallel(const Tensor& x, const Tensor& weight, const Tensor& bias,
                    const TensorParallel& tp) {
  if (recording({&x, &weight})) return RowParallel::apply(x, weight, present(bias), tp);
  return project_rows(x, weight, bias, tp);
}

Tensor gated_row_parallel(const Tensor& gate, const Tensor& up, const Tensor& weight,
                          const Tensor& bias, const TensorParallel& tp, bool recompute) {
  if (recording({&gate, &up, &weight})) {
    return GatedRowParallel::apply(gate, up, weight, present(bias), tp, recompute);
  }
  return project_rows(swiglu_forward(gate, up), weight, bias, tp);
}

Tensor swiglu(const Tensor& gate, const Tensor& up) {
  return recording({&gate, &up}) ? SwiGlu::apply(gate, up) : swiglu_forward(gate, up);
}

Tensor embed(const Tensor& table, const Tensor& ids, const Tensor& outside,
             const TensorParallel& tp) {
  if (recording({&table})) return Embed::apply(table, ids, present(outside), tp);
  return Embed::looked_up(table, ids, outside, tp);
}

}  // namespace tessera
