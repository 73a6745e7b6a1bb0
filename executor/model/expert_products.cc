#include "executor/model/expert_products.h"

#include <ATen/ops/_grouped_mm.h>

#include <optional>
#include <utility>

#include "executor/model/layer_ops.h"
#include "executor/tensor/gradient_products.h"

namespace tessera {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kGroupedAlignment = 16;  // bytes, of strides and of memory

bool aligned(const Tensor& x) {
  const auto size = static_cast<std::int64_t>(x.element_size());
  return x.stride(-1) == 1 && x.stride(-2) * size % kGroupedAlignment == 0 &&
         reinterpret_cast<std::uintptr_t>(x.const_data_ptr()) % kGroupedAlignment == 0;
}

/// The experts' matrices of one kind; `whole` [experts, out, in] where they adjoin.
struct Matrices {
  at::TensorList parts;  // `each` to an expert, stacked along dim 0
  std::size_t each = 1;
  std::optional<Tensor> whole;

  Tensor of(std::size_t expert) const { return stacked(parts.slice(expert * each, each)); }

  bool grouped() const {
    return whole && aligned(*whole) && (whole->is_cpu() || whole->scalar_type() == at::kBFloat16);
  }
};

Matrices matrices(at::TensorList parts, std::size_t each) {
  Matrices all{parts, each, std::nullopt};
  if (auto together = adjoined(parts)) {
    const auto experts = static_cast<std::int64_t>(parts.size() / each);
    all.whole = together->view({experts, together->size(0) / experts, together->size(1)});
  }
  return all;
}

/// Each row of x times its expert's matrix (transposed: times its transpose).
Tensor grouped_product(const Tensor& x, const Matrices& experts, bool transposed,
                       ExpertRows& rows) {
  const Tensor first = experts.of(0);
  if (x.size(0) == 0) return torch::empty({0, first.size(transposed ? 0 : 1)}, x.options());
  if (experts.grouped() && aligned(x)) {
    return at::_grouped_mm(x, transposed ? experts.whole->transpose(1, 2) : *experts.whole,
                           rows.ends);
  }
  std::vector<Tensor> products;
  std::int64_t next = 0;
  for (std::size_t expert = 0; expert < rows.on_host().size(); ++expert) {
    const std::int64_t count = rows.on_host()[expert];
    if (count == 0) continue;
    const Tensor matrix = experts.of(expert);
    products.push_back(at::mm(x.narrow(0, next, count), transposed ? matrix.t() : matrix));
    next += count;
  }
  return torch::cat(products);
}

/// Appends the gradients of `experts`: of each the product of its rows of a' and b.
void append_expert_gradients(const Tensor& a, const Tensor& b, const Matrices& experts, bool needed,
                             ExpertRows& rows, variable_list& result) {
  if (!needed) {
    result.resize(result.size() + experts.parts.size());
    return;
  }
  std::int64_t next = 0;
  for (std::size_t expert = 0; expert < rows.on_host().size(); ++expert) {
    const std::int64_t count = rows.on_host()[expert];
    const Tensor left = a.narrow(0, next, count).t(), right = b.narrow(0, next, count);
    next += count;
    append_gradients(
        experts.parts.slice(expert * experts.each, experts.each), true, result,
        [&] { return at::mm(left, right); },
        [&](const Tensor& buffer) {
          if (count > 0) return add_product(buffer, left, right);
          add_nothing(buffer);
        });
  }
}

struct Halves {
  Tensor gate, up;
};
Halves halves(const Tensor& x) {
  const std::int64_t columns = x.size(1) / 2;
  return {x.narrow(1, 0, columns), x.narrow(1, columns, columns)};
}

struct ExpertMlp : torch::autograd::Function<ExpertMlp> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& counts,
                        ExpertRows& rows, at::TensorList gate_up, at::TensorList down,
                        bool recompute) {
    const Tensor inner = grouped_product(x, matrices(gate_up, 2), true, rows);
    const auto [gate, up] = halves(inner);
    const Tensor product = swiglu(gate, up);
    variable_list saved{x, counts, inner, recompute ? Tensor() : product};
    saved.insert(saved.end(), gate_up.begin(), gate_up.end());
    saved.insert(saved.end(), down.begin(), down.end());
    context->save_for_backward(std::move(saved));
    context->saved_data["host"] = rows.host;
    return grouped_product(product, matrices(down, 1), false, rows);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &inner = saved[2];
    ExpertRows rows = expert_rows(saved[1]);
    rows.host = context->saved_data["host"].toIntVector();
    const at::TensorList weights = at::TensorList(saved).slice(4);
    const std::size_t experts = weights.size() / 3;
    const Matrices gate_up = matrices(weights.slice(0, 2 * experts), 2);
    const Matrices down = matrices(weights.slice(2 * experts), 1);
    const Tensor g = gradients[0].contiguous();
    const auto [gate, up] = halves(inner);
    const Tensor product = saved[3].defined() ? saved[3] : swiglu(gate, up);
    const Tensor inner_gradient =
        side_by_side(swiglu_backward(grouped_product(g, down, true, rows), gate, up));
    // Inputs: x, counts, rows, gate_up..., down..., recompute.
    variable_list result(3);
    if (context->needs_input_grad(0)) {
      result[0] = grouped_product(inner_gradient, gate_up, false, rows);
    }
    append_expert_gradients(inner_gradient, x, gate_up, context->needs_input_grad(2), rows, result);
    append_expert_gradients(product, g, down, context->needs_input_grad(2 + 2 * experts), rows,
                            result);
    result.emplace_back();
    return result;
  }
};

}  // namespace

const std::vector<std::int64_t>& ExpertRows::on_host() {
  if (host.empty()) {
    const Tensor copy = counts.cpu();
    const auto* const first = copy.const_data_ptr<std::int64_t>();
    host.assign(first, first + copy.numel());
  }
  return host;
}

ExpertRows expert_rows(const Tensor& counts) {
  return {counts, counts.cumsum(0, at::kLong).to(at::kInt), {}};
}

bool grouped(const ExpertWeights& weights) {
  const Tensor& gate = weights.gate_up.front();
  return matrices(weights.gate_up, 2).grouped() && matrices(weights.down, 1).grouped() &&
         gate.size(0) * static_cast<std::int64_t>(gate.element_size()) % kGroupedAlignment == 0;
}

Tensor expert_mlp(const Tensor& x, const ExpertRows& rows, const ExpertWeights& weights,
                  bool recompute) {
  ExpertRows own = rows;
  if (recording({&x, &weights.gate_up.front()})) {
    return ExpertMlp::apply(x, rows.counts, own, at::TensorList(weights.gate_up),
                            at::TensorList(weights.down), recompute);
  }
  const Tensor inner = grouped_product(x, matrices(weights.gate_up, 2), true, own);
  const auto [gate, up] = halves(inner);
  return grouped_product(swiglu(gate, up), matrices(weights.down, 1), false, own);
}

}  // namespace tessera
