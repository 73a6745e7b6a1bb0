// Autograd nodes around a piece of a model: run it again in the backward pass, or call back then.
#pragma once

#include "executor/tensor/torch.h"

#include <functional>

namespace tessera {

/// fn(x), of which only x is kept: the backward pass runs fn again and differentiates that. Leaves
/// that fn uses get their gradients accumulated. Without recording: fn(x).
torch::Tensor recomputed(const torch::Tensor& x,
                         std::function<torch::Tensor(const torch::Tensor&)> fn);

/// x; `call` runs once the gradient of the result is complete, before it passes on. Without
/// recording: x.
torch::Tensor on_backward(const torch::Tensor& x, std::function<void()> call);

}  // namespace tessera
