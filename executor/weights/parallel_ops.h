// Collectives of tensor parallelism on tensors, plain and differentiable.
//
// Without a group, or in one of one rank, every function is the identity. On the CPU collectives
// block the calling thread, on a GPU they are enqueued on the communicator's stream, which must be
// torch's current one. Autograd runs the backward of one graph on one thread in an order that
// follows from the graph, so ranks with equal graphs call the collectives in equal order.
//
// With sequence parallelism (Korthikanti et al. 2022) the activations between the parallel regions
// are cut along tokens: rank i of t holds the i-th of t equal blocks of rows.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>

#include "executor/comm/communicator.h"

namespace tessera {

class TokenExchange;

/// In which order products, attention and the sums over ranks add up: in whatever order is fastest
/// for the batch, or in one that a row's own numbers and place in its text decide, so that its bits
/// are the same whatever other rows are computed with it. Fixed orders are without gradient.
enum class SumOrder : std::uint8_t { fastest, fixed };

struct TensorParallel {
  Communicator* group = nullptr;
  bool sequence = false;
  /// With sequence parallelism: lets activations travel beside the products; nullptr: collectives.
  TokenExchange* exchange = nullptr;
  SumOrder order = SumOrder::fastest;

  TensorParallel(Communicator* group = nullptr, bool sequence = false,  // NOLINT: converts
                 TokenExchange* exchange = nullptr)
      : group(group), sequence(sequence), exchange(exchange) {}
  bool alone() const { return group == nullptr || group->size() == 1; }
  bool cuts_tokens() const { return sequence && !alone(); }
};

/// All-reduces a contiguous tensor in place, without gradient.
void all_reduce_(torch::Tensor& x, Communicator* tp, ReduceOp op = ReduceOp::sum);

/// Every rank's rows one after another; without gradient.
torch::Tensor all_rows(const torch::Tensor& x, Communicator* tp);
/// This rank's block of rows of the sum over ranks; without gradient.
torch::Tensor summed_own_rows(const torch::Tensor& x, Communicator* tp);

/// Partial sums become whole: all of them, or with sequence parallelism this rank's rows. Without
/// gradient; may reuse x's memory. In the fixed order ranks are added one after another, in fp32,
/// and rounded once.
torch::Tensor whole_sum(torch::Tensor x, const TensorParallel& tp);
/// Gathers all rows of activations, as a parallel region sees those from outside. Without gradient.
torch::Tensor region_input(const torch::Tensor& x, const TensorParallel& tp);

/// All rows of sequence-parallel activations, for consumers whose gradient is whole on every rank:
/// backward takes this rank's rows of it. Identity without sequence parallelism.
torch::Tensor gather_tokens(const torch::Tensor& x, const TensorParallel& tp);

/// The two ends of a parallel region of several operators, differentiable: what region_input and
/// whole_sum do, each being the other's gradient.
torch::Tensor enter_parallel(const torch::Tensor& x, const TensorParallel& tp);
torch::Tensor leave_parallel(const torch::Tensor& x, const TensorParallel& tp);

/// Column blocks [rows, columns_i] of every rank side by side, `columns` in all, cut by the split
/// rule; without gradient.
torch::Tensor gather_columns(const torch::Tensor& x, std::int64_t columns, Communicator* tp);

}  // namespace tessera
