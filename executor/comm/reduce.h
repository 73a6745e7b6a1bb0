// Element-wise reduction of equally long blocks in a fixed order.
//
// Pure functions on host memory. Counts are elements.
#pragma once

#include <cstddef>
#include <span>

#include "cost_models/spec/dtype.h"
#include "executor/comm/communicator.h"

namespace tessera {

/// out[i] = inputs[0][i] op inputs[1][i] op ..., folded left to right. bf16 and fp16 accumulate in
/// fp32 and round once (to nearest even). `out` may be one of the inputs. Precondition: at least
/// one input.
void reduce_blocks(void* out, std::span<const void* const> inputs, std::size_t count, DType type,
                   ReduceOp op);

}  // namespace tessera
