// Gradients that several ranks hold parts of: qk-norms and shared KV heads over the tensor-parallel
// group, a tied embedding over the first and the last stage.
#include <algorithm>

#include "cost_models/layout/sharding.h"
#include "executor/comm/groups.h"
#include "executor/weights/parallel_ops.h"
#include "executor/weights/weights.h"

namespace tessera {
namespace {

constexpr std::int64_t kBucketElements = std::int64_t{1} << 24;  // 64 MiB of fp32

bool heads_shared(const Weights& weights) {
  const int tp = weights.layout.tp;
  for (int rank = 0; rank + 1 < tp; ++rank) {
    const HeadRange left = head_range(weights.model(), tp, rank);
    const HeadRange right = head_range(weights.model(), tp, rank + 1);
    if (left.kv.hi > right.kv.lo) return true;
  }
  return false;
}

/// Sums rows [first, last) of `rows`: each in a zero-filled frame of its whole size, so that ranks
/// with different parts of it line up.
void reduce_bucket(const Weights& weights, std::span<const int> rows, Communicator* tp,
                   std::vector<torch::Tensor>& gradients) {
  std::int64_t elements = 0;
  for (const int row : rows)
    elements += weights.table.rows[static_cast<std::size_t>(row)].elements();
  torch::Tensor bucket = torch::zeros(
      {elements}, torch::TensorOptions().dtype(torch::kFloat).device(weights.device()));
  std::vector<torch::Tensor> parts;
  std::int64_t offset = 0;
  for (const int row : rows) {
    const Parameter& parameter = weights.table.rows[static_cast<std::size_t>(row)];
    torch::Tensor part = bucket.narrow(0, offset, parameter.elements()).view(parameter.shape);
    offset += parameter.elements();
    if (parameter.split_dim >= 0) {
      const auto box = compute_box(parameter, weights.layout, weights.coord);
      const Interval held = box->dims[static_cast<std::size_t>(parameter.split_dim)];
      part = part.narrow(parameter.split_dim, held.lo, held.size());
    }
    part.copy_(gradients[static_cast<std::size_t>(row)]);
    parts.push_back(part);
  }
  all_reduce_(bucket, tp);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    gradients[static_cast<std::size_t>(rows[i])].copy_(parts[i]);
  }
}

}  // namespace

void reduce_tied_embedding(const Weights& weights, Communicator* ends,
                           std::vector<torch::Tensor>& gradients) {
  const int row = weights.rows.embedding;
  const bool tied = row >= 0 && weights.rows.head == row;
  if (ends == nullptr || !tied || !weights.holds(row)) return;
  all_reduce_(gradients[static_cast<std::size_t>(row)], ends);
}

std::vector<int> partial_gradient_rows(const Weights& weights) {
  if (weights.layout.tp == 1) return {};
  std::vector<int> rows = weights.partial_rows;
  const bool shared = heads_shared(weights), sequence = weights.layout.sequence_parallel;
  const auto add = [&](int row) {
    if (row >= 0 && weights.holds(row)) rows.push_back(row);
  };
  for (const LayerRows& layer : weights.rows.layers) {
    std::vector<int> candidates{layer.q_norm, layer.k_norm, layer.router};
    if (sequence) {
      candidates.insert(candidates.end(), {layer.input_norm, layer.post_norm, layer.o_bias,
                                           layer.down_bias, layer.shared_gate});
    }
    if (shared) {
      candidates.insert(candidates.end(), {layer.k, layer.v, layer.k_bias, layer.v_bias});
    }
    for (const int row : candidates) add(row);
  }
  if (sequence) add(weights.rows.final_norm);
  return rows;
}

void reduce_partial_gradients(const Weights& weights, Communicator* tp, std::span<const int> rows,
                              std::vector<torch::Tensor>& gradients) {
  torch::NoGradGuard no_grad;
  std::size_t first = 0;
  while (first < rows.size()) {
    std::size_t last = first;
    for (std::int64_t filled = 0; last < rows.size() && filled < kBucketElements; ++last) {
      filled += weights.table.rows[static_cast<std::size_t>(rows[last])].elements();
    }
    reduce_bucket(weights, rows.subspan(first, last - first), tp, gradients);
    first = last;
  }
}

void reduce_shared_gradients(const Weights& weights, const ParallelGroups& groups,
                             std::vector<torch::Tensor>& gradients) {
  torch::NoGradGuard no_grad;
  reduce_partial_gradients(weights, groups.tp.get(), partial_gradient_rows(weights), gradients);
  reduce_tied_embedding(weights, groups.embedding.get(), gradients);
}

}  // namespace tessera
