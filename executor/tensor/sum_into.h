// Sums of several tensors of one type in a fixed order, made in fp32.
#pragma once

#include <vector>

#include "executor/tensor/torch.h"

namespace tessera {

/// y = the sum of `parts` in their order, added to y where `keep`. Contiguous, of y's type (fp32 or
/// bf16) and size; rounded once.
void sum_into(torch::Tensor y, const std::vector<torch::Tensor>& parts, bool keep);

}  // namespace tessera
