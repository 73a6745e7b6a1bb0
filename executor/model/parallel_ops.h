// Differentiable collectives of tensor parallelism.
//
// `tp` may be nullptr or of size one: then every function is the identity. On the CPU collectives
// block the calling thread, on a GPU they are enqueued on the communicator's stream, which must be
// torch's current one. Autograd runs the backward of one graph on one thread in an order that
// follows from the graph, so ranks with equal graphs call the collectives in equal order.
#pragma once

#include <torch/torch.h>

#include "executor/comm/communicator.h"

namespace tessera {

/// All-reduce forward, identity backward: partial sums that become whole.
torch::Tensor reduce_from_tp(const torch::Tensor& x, Communicator* tp);

/// All-reduces a contiguous tensor in place, without gradient.
void all_reduce_(torch::Tensor& x, Communicator* tp, ReduceOp op = ReduceOp::sum);

/// Column blocks [rows, columns_i] of every rank side by side, `columns` in all, cut by the split
/// rule; without gradient.
torch::Tensor gather_columns(const torch::Tensor& x, std::int64_t columns, Communicator* tp);

}  // namespace tessera
