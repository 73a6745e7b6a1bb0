#include "executor/tensor/gradient_products.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace tessera {
namespace {

using torch::Tensor;
using torch::autograd::variable_list;

thread_local Tensor overwritten;  // memory of buffers

bool overwrites(const Tensor& buffer) {
  return overwritten.defined() && buffer.is_alias_of(overwritten);
}

}  // namespace

bool recording(std::initializer_list<const Tensor*> inputs) {
  if (!at::GradMode::is_enabled()) return false;
  for (const Tensor* x : inputs) {
    if (x->defined() && x->requires_grad()) return true;
  }
  return false;
}

std::optional<Tensor> gradient_buffer(const Tensor& weight) {
  if (!weight.is_leaf() || !weight.requires_grad()) return std::nullopt;
  const Tensor& buffer = weight.grad();
  if (!buffer.defined() || buffer.scalar_type() != at::kFloat || !buffer.is_contiguous()) {
    return std::nullopt;
  }
  return buffer;
}

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

void overwrite_matrix_gradients(const Tensor& memory) { overwritten = memory; }

void add_product(const Tensor& buffer, const Tensor& a, const Tensor& b) {
  Tensor out = buffer;
  if (overwrites(buffer)) {
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

void add_nothing(const Tensor& buffer) {
  if (overwrites(buffer)) buffer.zero_();
}

Tensor stacked(at::TensorList parts) {
  if (parts.size() == 1) return parts[0];
  const auto whole = adjoined(parts);
  return whole ? *whole : torch::cat(parts);
}

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
    if (direct && buffers[i].dim() > 1 && overwrites(buffers[i])) {
      buffers[i].copy_(parts[i]);
    } else if (direct) {
      buffers[i].add_(parts[i]);
    } else {
      result[first + i] = parts[i];
    }
  }
}

void append_bias_gradients(at::TensorList biases, bool needed, const Tensor& g,
                           variable_list& result) {
  append_gradients(
      biases, needed, result, [&] { return g.sum(0); },
      [&](const Tensor& buffer) { buffer.add_(g.sum(0, false, at::kFloat)); });
}

}  // namespace tessera
