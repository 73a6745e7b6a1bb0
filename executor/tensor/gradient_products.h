// Where a layer's gradients go: straight into fp32 buffers by one product, or back to autograd.
//
// A weight that is a leaf with an fp32 gradient has a buffer. Weights that adjoin in one arena
// (q|k|v, gate|up) are one matrix to the products. On torch's current device and stream.
#pragma once

#include "executor/tensor/torch.h"

#include <functional>
#include <initializer_list>
#include <optional>

namespace tessera {

/// Autograd records a node of these inputs.
bool recording(std::initializer_list<const torch::Tensor*> inputs);

/// Where gradients of `weight` are to be added: its fp32 gradient buffer, or nullopt.
std::optional<torch::Tensor> gradient_buffer(const torch::Tensor& weight);

/// From now on products of this thread overwrite the gradient buffers of matrices that lie in
/// `memory` (none: undefined) instead of being added to them: for layers whose every matrix gets
/// one product in buffers that were not cleared.
void overwrite_matrix_gradients(const torch::Tensor& memory);

/// buffer (fp32) += a x b (= a x b while overwriting), operands of any type.
void add_product(const torch::Tensor& buffer, const torch::Tensor& a, const torch::Tensor& b);

/// As add_product of operands without an inner extent: nothing, or zeros while overwriting.
void add_nothing(const torch::Tensor& buffer);

/// Several tensors as one that shares their memory, stacked along dim 0, where they adjoin in one
/// arena.
std::optional<torch::Tensor> adjoined(at::TensorList parts);
/// Stacked along dim 0: without a copy where they adjoin in memory.
torch::Tensor stacked(at::TensorList parts);
/// Column blocks of one matrix side by side: without a copy where they are that already.
torch::Tensor side_by_side(at::TensorList blocks);

/// The gradients of `weights` (stacked along dim 0) are `make`'s: added to their buffers by `add`
/// where all have one, else made and appended to `result`. Appends one entry per weight.
void append_gradients(at::TensorList weights, bool needed, torch::autograd::variable_list& result,
                      const std::function<torch::Tensor()>& make,
                      const std::function<void(const torch::Tensor&)>& add);
/// A replicated vector's gradient: the sum over rows.
void append_bias_gradients(at::TensorList biases, bool needed, const torch::Tensor& g,
                           torch::autograd::variable_list& result);

}  // namespace tessera
