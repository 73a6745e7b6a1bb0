#include "executor/tensor/sum_into.h"

#include "executor/tensor/fused.h"

namespace tessera {

void sum_into(torch::Tensor y, const std::vector<torch::Tensor>& parts, bool keep) {
  if (fused::usable(y)) return fused::sum_parts(y, parts, keep);
  torch::Tensor sum = parts.front().to(torch::kFloat32, /*non_blocking=*/false, /*copy=*/true);
  for (std::size_t i = 1; i < parts.size(); ++i) sum.add_(parts[i]);
  if (keep) sum.add_(y);
  y.copy_(sum);
}

}  // namespace tessera
