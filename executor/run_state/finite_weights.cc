#include "executor/run_state/finite_weights.h"

#include "executor/run_state/state_pieces.h"

namespace tessera {
namespace {

using torch::Tensor;

bool finite(const Tensor& values) {
  if (values.numel() == 0) return true;
  const auto [least, largest] = torch::aminmax(values);
  return torch::stack({least, largest}).isfinite().all().item<bool>();
}

}  // namespace

std::string tensor_not_finite(const Weights& weights) {
  const torch::NoGradGuard no_grad;
  for (std::size_t row = 0; row < weights.tensors.size(); ++row) {
    const Tensor& tensor = weights.tensors[row];
    if (tensor.defined() && !finite(tensor)) return weights.table.rows[row].name;
  }
  return {};
}

std::string tensor_not_finite(const Weights& weights, const Optimizer& optimizer) {
  const torch::NoGradGuard no_grad;
  const Tensor master = optimizer.state().master.detach();
  if (finite(master)) return {};
  for (const StatePiece& piece : held_pieces(weights, optimizer.map())) {
    if (finite(master.narrow(0, piece.shard, piece.count()))) continue;
    return weights.table.rows[static_cast<std::size_t>(piece.row)].name;
  }
  return {};
}

}  // namespace tessera
