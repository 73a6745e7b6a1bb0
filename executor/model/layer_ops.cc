#include "executor/model/layer_ops.h"

#include <array>
#include <optional>
#include <utility>

#include "cost_models/documents/check.h"
#include "executor/model/ordered_ops.h"
#include "executor/model/token_exchange.h"
#include "executor/tensor/fused.h"
#include "executor/tensor/gradient_products.h"

namespace tessera {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

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

/// Rows that a parallel region works on: all of them, there or (with an exchange) on their way.
struct RegionInput {
  Tensor rows;  // undefined while on their way
  TokenExchange::Arriving arriving;
};

bool exchanges(std::int64_t own_tokens, const TensorParallel& tp) {
  return tp.order == SumOrder::fastest && tp.cuts_tokens() && tp.exchange != nullptr &&
         tp.exchange->pays(own_tokens);
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
  if (tp.order == SumOrder::fixed) {
    const Tensor y = ordered_product(input.rows, weight);
    return bias.defined() ? y.add_(bias) : y;
  }
  return bias.defined() ? at::addmm(bias, input.rows, weight) : at::mm(input.rows, weight);
}

/// x times weight leaves the region: whole_sum of it.
Tensor summed_product(const Tensor& x, const Tensor& weight, const TensorParallel& tp) {
  if (tp.cuts_tokens() && exchanges(x.size(0) / tp.group->size(), tp)) {
    return tp.exchange->product_summed(x, weight);
  }
  const bool fixed = tp.order == SumOrder::fixed;
  return whole_sum(fixed ? ordered_product(x, weight) : at::mm(x, weight), tp);
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

/// Appends the weight's and the bias' gradients, as both row-parallel nodes have them.
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

Tensor swiglu_forward(const Tensor& gate, const Tensor& up, SumOrder order = SumOrder::fastest) {
  if (fused::usable(gate) && gate.stride(0) == up.stride(0)) return fused::swiglu(gate, up);
  if (order == SumOrder::fixed) return ordered_swiglu(gate, up);
  return at::silu(gate).mul_(up);
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
                        const std::optional<Tensor>& outside, std::int64_t padding,
                        const TensorParallel& tp) {
    context->save_for_backward({table, ids, outside.value_or(Tensor())});
    context->saved_data["padding"] = padding;
    keep(context, tp);
    return looked_up(table, ids, outside.value_or(Tensor()), tp);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &table = saved[0], &ids = saved[1], &outside = saved[2];
    const std::int64_t padding = context->saved_data["padding"].toInt();
    Tensor g = region_input(gradients[0], kept(context));
    if (outside.defined()) g = g.masked_fill(outside.unsqueeze(1), 0);
    if (padding >= 0) g = g.masked_fill((ids == padding).unsqueeze(1), 0);
    if (const auto buffer = gradient_buffer(table)) {
      // By sorted ids: the same bits in every run.
      buffer->index_put_({ids}, g.to(at::kFloat), /*accumulate=*/true);
      return {Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
    }
    return {at::embedding_dense_backward(g, ids, table.size(0), -1, false), Tensor(), Tensor(),
            Tensor(), Tensor()};
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

/// y += scale * low b^T, as part of the product: y and b [out, rank] are read once.
struct AddLowRank : torch::autograd::Function<AddLowRank> {
  static Tensor forward(AutogradContext* context, Tensor y, const Tensor& low, const Tensor& b,
                        double scale) {
    context->save_for_backward({low, b});
    context->saved_data["scale"] = scale;
    context->mark_dirty({y});
    return y.addmm_(low, b.t(), 1, scale);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &low = saved[0], &b = saved[1], &g = gradients[0];
    const double scale = context->saved_data["scale"].toDouble();
    variable_list result{g, context->needs_input_grad(1) ? at::mm(g, b).mul_(scale) : Tensor()};
    append_gradients(
        {b}, context->needs_input_grad(2), result, [&] { return at::mm(g.t(), low).mul_(scale); },
        [&](const Tensor& buffer) { add_product(buffer, g.t(), low * scale); });
    result.emplace_back();
    return result;
  }
};

/// y, which nothing else needs, and the adapter's product with `low` = x a^T.
Tensor with_low_rank(const Tensor& y, const Tensor& low, const LowRank& adapter) {
  if (recording({&y, &low, &adapter.b})) {
    return AddLowRank::apply(y, low, adapter.b, adapter.scale);
  }
  return Tensor(y).addmm_(low, adapter.b.t(), 1, adapter.scale);
}

/// Products of column-parallel weights with their adapters', of inputs that are all there. Those
/// with the matrices A, which are not cut, are one.
Projections adapted_columns(const Tensor& x, Projections y, const ProjectionAdapters& adapters) {
  const std::array<std::pair<Tensor*, const LowRank*>, 3> all{
      {{&y.a, adapters.a}, {&y.b, adapters.b}, {&y.c, adapters.c}}};
  variable_list a;
  for (const auto& [product, adapter] : all)
    if (adapter != nullptr) a.push_back(adapter->a);
  const variable_list low =
      recording({&x, &a.front()})
          ? ColumnParallel::apply(x, at::TensorList(a), at::TensorList(), TensorParallel())
          : project_columns(x, a, {}, {});
  auto next = low.begin();
  for (const auto& [product, adapter] : all)
    if (adapter != nullptr) *product = with_low_rank(*product, *next++, *adapter);
  return y;
}

}  // namespace

variable_list swiglu_backward(const Tensor& g, const Tensor& gate, const Tensor& up) {
  if (fused::usable(gate) && gate.stride(0) == up.stride(0)) {
    const fused::GatePair d = fused::swiglu_backward(g, gate, up);
    return {d.gate, d.up};
  }
  return {at::silu_backward(g * up, gate), at::silu(gate).mul_(g)};
}

Tensor replicated_product(const Tensor& x, const Tensor& weight) {
  const std::array<Tensor, 1> weights{weight};
  return recording({&x, &weight})
             ? ColumnParallel::apply(x, at::TensorList(weights), at::TensorList(), nullptr)[0]
             : at::mm(x, weight.t());
}

Projections column_parallel(const Tensor& x, const Projections& w, const Projections& b,
                            const TensorParallel& tp, const ProjectionAdapters& adapters) {
  TESSERA_CHECK(tp.order == SumOrder::fastest || !recording({&x, &w.a, &w.b, &w.c}));
  if (adapters.any()) {
    TESSERA_CHECK(tp.order == SumOrder::fastest);
    const Tensor all = enter_parallel(x, tp);
    return adapted_columns(all, column_parallel(all, w, b, {}), adapters);
  }
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
                    const TensorParallel& tp, const LowRank* adapter) {
  if (adapter != nullptr) {
    TESSERA_CHECK(tp.order == SumOrder::fastest);
    const Tensor low = row_parallel(x, adapter->a, {}, {});
    const Tensor sum =
        leave_parallel(with_low_rank(row_parallel(x, weight, {}, {}), low, *adapter), tp);
    return bias.defined() ? sum + bias : sum;
  }
  if (recording({&x, &weight})) {
    TESSERA_CHECK(tp.order == SumOrder::fastest);
    return RowParallel::apply(x, weight, present(bias), tp);
  }
  return project_rows(x, weight, bias, tp);
}

Tensor gated_row_parallel(const Tensor& gate, const Tensor& up, const Tensor& weight,
                          const Tensor& bias, const TensorParallel& tp, bool recompute,
                          const LowRank* adapter) {
  if (adapter != nullptr) return row_parallel(swiglu(gate, up), weight, bias, tp, adapter);
  if (recording({&gate, &up, &weight})) {
    return GatedRowParallel::apply(gate, up, weight, present(bias), tp, recompute);
  }
  return project_rows(swiglu_forward(gate, up, tp.order), weight, bias, tp);
}

Tensor swiglu(const Tensor& gate, const Tensor& up) {
  return recording({&gate, &up}) ? SwiGlu::apply(gate, up) : swiglu_forward(gate, up);
}

Tensor embed(const Tensor& table, const Tensor& ids, const Tensor& outside, std::int64_t padding,
             const TensorParallel& tp) {
  if (recording({&table})) return Embed::apply(table, ids, present(outside), padding, tp);
  return Embed::looked_up(table, ids, outside, tp);
}

}  // namespace tessera
