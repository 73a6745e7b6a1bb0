#include "executor/model/parallel_ops.h"

#include "cost_models/spec/split.h"
#include "executor/model/weights.h"

namespace tessera {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

bool alone(const Communicator* tp) { return tp == nullptr || tp->size() == 1; }

bool recording(const torch::Tensor& x) { return at::GradMode::is_enabled() && x.requires_grad(); }

/// An all-reduced copy of x.
torch::Tensor all_reduced(const torch::Tensor& x, Communicator* tp) {
  torch::Tensor sum = x.clone(at::MemoryFormat::Contiguous);
  all_reduce_(sum, tp);
  return sum;
}

struct ReduceFromTp : torch::autograd::Function<ReduceFromTp> {
  static torch::Tensor forward(AutogradContext*, const torch::Tensor& x, Communicator* tp) {
    return all_reduced(x, tp);
  }
  static variable_list backward(AutogradContext*, variable_list gradients) {
    return {gradients[0], torch::Tensor()};
  }
};

}  // namespace

torch::Tensor reduce_from_tp(const torch::Tensor& x, Communicator* tp) {
  if (alone(tp)) return x;
  return recording(x) ? ReduceFromTp::apply(x, tp) : all_reduced(x, tp);
}

void all_reduce_(torch::Tensor& x, Communicator* tp, ReduceOp op) {
  if (alone(tp)) return;
  TORCH_CHECK(x.is_contiguous());
  tp->all_reduce(x.data_ptr(), static_cast<std::size_t>(x.numel()), dtype_of(x.scalar_type()), op);
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
