// Products on a GPU whose rows have the same bits however many rows there are.
//
// cuBLASLt would choose another algorithm for another number of rows. Here every weight shape has
// one reference algorithm, which adds up the inputs in one go (no split over them, also where a
// narrow result occupies a few multiprocessors: on an H200 products of 16 to 8,192 rows are within
// 4 % of the fastest algorithm's time but for few rows of the narrowest). A number of rows may have
// a faster one if it gave the reference's bits on random numbers. The choice is made
// once per device, thread and shape, by the first product of that shape, which may not be part of a
// capture. Needs no workspace. bf16 operands, fp32 accumulation.
#pragma once

#include "executor/tensor/torch.h"

namespace tessera::ordered_products {

/// x [rows, inputs] times weight [inputs, outputs] (a dense matrix or the transpose of one),
/// rounded once to `type`, bf16 or fp32. Throws Error{infeasible} where cuBLASLt has no such
/// algorithm.
torch::Tensor on_gpu(const torch::Tensor& x, const torch::Tensor& weight, at::ScalarType type);

}  // namespace tessera::ordered_products
