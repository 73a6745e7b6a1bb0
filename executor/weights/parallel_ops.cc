#include "executor/weights/parallel_ops.h"

#include "cost_models/spec/split.h"
#include "executor/weights/weights.h"

namespace tessera {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

bool alone(const Communicator* tp) { return tp == nullptr || tp->size() == 1; }

std::size_t count_of(const torch::Tensor& x) { return static_cast<std::size_t>(x.numel()); }

struct GatherTokens : torch::autograd::Function<GatherTokens> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, Communicator* tp) {
    context->saved_data["rank"] = tp->rank();
    context->saved_data["rows"] = x.size(0);
    return all_rows(x, tp);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const std::int64_t rows = context->saved_data["rows"].toInt();
    return {gradients[0].narrow(0, context->saved_data["rank"].toInt() * rows, rows),
            torch::Tensor()};
  }
};

/// With x whole, the sum works on a copy: autograd may own x.
torch::Tensor summed(const torch::Tensor& x, const TensorParallel& tp) {
  return whole_sum(tp.cuts_tokens() ? x : x.contiguous().clone(), tp);
}

/// One end of a region forward, the other backward.
struct RegionEnd : torch::autograd::Function<RegionEnd> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x,
                               const TensorParallel& tp, bool entry) {
    context->saved_data["group"] = reinterpret_cast<std::int64_t>(tp.group);
    context->saved_data["sequence"] = tp.sequence;
    context->saved_data["entry"] = entry;
    if (!entry) return summed(x, tp);
    return tp.cuts_tokens() ? all_rows(x, tp.group) : x;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const TensorParallel tp(reinterpret_cast<Communicator*>(context->saved_data["group"].toInt()),
                            context->saved_data["sequence"].toBool());
    const bool entry = context->saved_data["entry"].toBool();
    return {entry ? summed(gradients[0], tp) : region_input(gradients[0], tp), torch::Tensor(),
            torch::Tensor()};
  }
};

/// The ranks' parts in the order of the ranks. Two parts have one sum, in any order.
torch::Tensor ordered_sum(const torch::Tensor& x, const TensorParallel& tp) {
  const torch::Tensor all = all_rows(x, tp.group);
  const std::int64_t rows = x.size(0);
  torch::Tensor sum = all.narrow(0, 0, rows).to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  for (int rank = 1; rank < tp.group->size(); ++rank) {
    sum.add_(all.narrow(0, rank * rows, rows));
  }
  if (tp.cuts_tokens()) {
    const std::int64_t own = rows / tp.group->size();
    sum = sum.narrow(0, tp.group->rank() * own, own).contiguous();
  }
  return sum.to(x.scalar_type());
}

bool records(const torch::Tensor& x) { return at::GradMode::is_enabled() && x.requires_grad(); }

}  // namespace

torch::Tensor enter_parallel(const torch::Tensor& x, const TensorParallel& tp) {
  if (tp.alone()) return x;
  return records(x) ? RegionEnd::apply(x, tp, true) : region_input(x, tp);
}

torch::Tensor leave_parallel(const torch::Tensor& x, const TensorParallel& tp) {
  if (tp.alone()) return x;
  return records(x) ? RegionEnd::apply(x, tp, false) : summed(x, tp);
}

void all_reduce_(torch::Tensor& x, Communicator* tp, ReduceOp op) {
  if (alone(tp)) return;
  TORCH_CHECK(x.is_contiguous());
  tp->all_reduce(x.data_ptr(), count_of(x), dtype_of(x.scalar_type()), op);
}

torch::Tensor all_rows(const torch::Tensor& x, Communicator* tp) {
  if (alone(tp)) return x;
  const torch::Tensor mine = x.contiguous();
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape[0] *= tp->size();
  torch::Tensor all = torch::empty(shape, x.options().requires_grad(false));
  tp->all_gather(mine.data_ptr(), all.data_ptr(), count_of(mine), dtype_of(x.scalar_type()));
  return all;
}

torch::Tensor summed_own_rows(const torch::Tensor& x, Communicator* tp) {
  if (alone(tp)) return x;
  const torch::Tensor parts = x.contiguous();
  std::vector<std::int64_t> shape = x.sizes().vec();
  TORCH_CHECK(shape[0] % tp->size() == 0, shape[0], " tokens on ", tp->size(), " ranks");
  shape[0] /= tp->size();
  torch::Tensor own = torch::empty(shape, x.options().requires_grad(false));
  tp->reduce_scatter(parts.data_ptr(), own.data_ptr(), count_of(own), dtype_of(x.scalar_type()),
                     ReduceOp::sum);
  return own;
}

torch::Tensor whole_sum(torch::Tensor x, const TensorParallel& tp) {
  if (tp.order == SumOrder::fixed && !tp.alone() && tp.group->size() > 2) {
    return ordered_sum(x, tp);
  }
  if (tp.cuts_tokens()) return summed_own_rows(x, tp.group);
  all_reduce_(x, tp.group);
  return x;
}

torch::Tensor region_input(const torch::Tensor& x, const TensorParallel& tp) {
  return tp.cuts_tokens() ? all_rows(x, tp.group) : x;
}

torch::Tensor gather_tokens(const torch::Tensor& x, const TensorParallel& tp) {
  if (!tp.cuts_tokens()) return x;
  return records(x) ? GatherTokens::apply(x, tp.group) : all_rows(x, tp.group);
}

torch::Tensor gather_columns(const torch::Tensor& x, std::int64_t columns, Communicator* tp) {
  if (alone(tp)) return x;
  const std::int64_t size = tp->size(), rows = x.size(0);
  const std::int64_t widest = (columns + size - 1) / size;
  const Interval own = split(columns, size, tp->rank());
  torch::Tensor mine = torch::empty({rows, widest}, x.options());
  mine.narrow(1, 0, own.size()).copy_(x);
  torch::Tensor all = torch::empty({size, rows, widest}, x.options());
  tp->all_gather(mine.data_ptr(), all.data_ptr(), static_cast<std::size_t>(mine.numel()),
                 dtype_of(x.scalar_type()));
  std::vector<torch::Tensor> blocks;
  for (std::int64_t rank = 0; rank < size; ++rank) {
    blocks.push_back(all[rank].narrow(1, 0, split(columns, size, rank).size()));
  }
  return torch::cat(blocks, 1);
}

}  // namespace tessera
