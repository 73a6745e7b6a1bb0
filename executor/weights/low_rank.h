// A low-rank addend to a matrix W of a model: y = x W^T + scale (x A^T) B^T (LoRA).
//
// A plain value that shares the tensors of the adapters' own Weights. In memory as those keep them:
// of a column-parallel W a is [rank, in] and b [this rank's out, rank]; of a row-parallel one a is
// [this rank's in, rank] and b [out, rank].
#pragma once

#include "executor/tensor/torch.h"

namespace tessera {

struct LowRank {
  torch::Tensor a, b;
  double scale = 1;  // alpha / rank

  bool defined() const { return a.defined(); }
};

}  // namespace tessera
