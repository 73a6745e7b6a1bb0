#include "executor/model/ordered_attention.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"
#include "executor/model/decoder_layer.h"
#include "executor/model/ordered_ops.h"
#include "executor/ordered/ordered_loops.h"
#include "executor/tensor/fused.h"
#include "executor/tensor/to_device.h"

namespace tessera {
namespace {

using torch::Tensor;

std::span<const std::int32_t> ints(const Tensor& x) {
  return {x.const_data_ptr<std::int32_t>(), static_cast<std::size_t>(x.numel())};
}

/// Every token of the rows, in their order.
std::vector<OrderedQuery> queries_of(const fused::PagedRows& rows) {
  const auto lengths = ints(rows.query_lengths), keys = ints(rows.key_lengths);
  std::vector<OrderedQuery> queries;
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    const auto r = static_cast<std::size_t>(row);
    const std::int32_t* const pages =
        rows.page_table.const_data_ptr<std::int32_t>() + row * rows.page_table.size(1);
    for (std::int32_t t = 0; t < lengths[r]; ++t) {
      queries.push_back({.position = keys[r] - lengths[r] + t, .pages = pages});
    }
  }
  return queries;
}

/// Normalised and rotated queries; keys and values go to a cache of packed tokens.
Tensor store_packed(const Weights& weights, const LayerRows& rows, const Tensor& normed,
                    const OrderedPlan& plan, const TensorParallel& tp, fused::PagedCache& cache) {
  const ModelSpec& model = weights.model();
  if (normed.is_cuda()) {
    const HeadRange heads = head_range(model, weights.layout.tp, weights.coord.tp);
    const std::vector<std::int64_t> shape{plan.positions.size(0), heads.kv.size(), 1,
                                          model.head_dim};
    cache = {torch::empty(shape, normed.options()), torch::empty(shape, normed.options())};
    return project_and_store(weights, rows, normed, plan.rope, plan.positions, plan.places, cache,
                             tp);
  }
  const HeadStates heads = project_heads(weights, rows, normed, plan.rope, tp);
  cache = {heads.k.contiguous().unsqueeze(2), heads.v.contiguous().unsqueeze(2)};
  return heads.q;
}

}  // namespace

bool ordered_heads(std::int64_t head_dim) { return head_dim == 64 || head_dim == 128; }

Tensor attend_in_order(const fused::PagedRows& rows, const HeadRange& heads, const Tensor& q,
                       const fused::PagedCache& cache, std::int64_t window) {
  if (q.is_cuda()) {
    TESSERA_CHECK(heads.uniform());
    return fused::attend_in_order(rows, q, cache, window);
  }
  TESSERA_CHECK(q.scalar_type() == at::kFloat && cache.keys.scalar_type() == at::kFloat);
  const Tensor in = q.contiguous();
  Tensor out = torch::empty(q.sizes(), q.options());
  const std::vector<OrderedQuery> queries = queries_of(rows);
  TESSERA_CHECK(static_cast<std::int64_t>(queries.size()) == q.size(0));
  ordered_attention(queries, heads.kv_of_query, window,
                    {.keys = cache.keys.const_data_ptr<float>(),
                     .values = cache.values.const_data_ptr<float>(),
                     .kv_heads = cache.keys.size(1),
                     .page_tokens = cache.keys.size(2),
                     .head_dim = q.size(2)},
                    in.const_data_ptr<float>(), out.data_ptr<float>(), at::get_num_threads());
  return out;
}

void require_fixed_order(const Weights& weights) {
  const ModelSpec& model = weights.model();
  const bool gpu = weights.device().is_cuda();
  std::string why;
  if (model.moe) why = "experts, whose products have as many rows as tokens chose them";
  if (weights.layout.cp > 1) why = "context parallelism, whose attention adds up parts";
  if (!gpu && weights.dtype != DType::fp32) why = "weights other than fp32 on CPU ranks";
  if (gpu && weights.dtype != DType::bf16) why = "weights other than bf16 on a GPU";
  if (gpu && !fused::usable(weights.storage)) why = "a GPU without the kernels of this build";
  if (gpu && !ordered_heads(model.head_dim)) {
    why = "heads of other than 64 or 128 elements on a GPU";
  }
  if (gpu && !head_range(model, weights.layout.tp, weights.coord.tp).uniform()) {
    why = "KV heads that do not serve equally many query heads of a rank";
  }
  if (!why.empty()) throw Error(ExitCode::infeasible, "the fixed order does not support " + why);
}

Tensor project_and_store(const Weights& weights, const LayerRows& rows, const Tensor& normed,
                         const RopeTable& rope, const Tensor& positions, const Tensor& places,
                         const fused::PagedCache& cache, const TensorParallel& tp) {
  const auto [q, k, v] = column_parallel(
      normed, {weights.tensor(rows.q), weights.tensor(rows.k), weights.tensor(rows.v)},
      {weights.tensor(rows.q_bias), weights.tensor(rows.k_bias), weights.tensor(rows.v_bias)}, tp,
      {weights.adapter(rows.q), weights.adapter(rows.k), weights.adapter(rows.v)});
  return fused::rotate_and_store({q, k, v, weights.tensor(rows.q_norm), weights.tensor(rows.k_norm),
                                  weights.model().norm_epsilon},
                                 rope.cos, rope.sin, positions, places, cache);
}

fused::PagedRows packed_rows(std::span<const std::int64_t> lengths, torch::Device device) {
  const auto count = static_cast<std::int64_t>(lengths.size());
  const std::int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  const std::int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  const Tensor sizes =
      torch::tensor(at::ArrayRef<std::int64_t>(lengths.data(), lengths.size()), torch::kInt64);
  const Tensor ends = sizes.cumsum(0);
  const Tensor starts = torch::cat({torch::zeros({1}, torch::kInt64), ends});
  const Tensor table =
      (starts.narrow(0, 0, count).unsqueeze(1) + torch::arange(longest).unsqueeze(0))
          .clamp_max(tokens - 1);
  const auto there = [&](const Tensor& x) { return to_device(x.to(torch::kInt), device); };
  const Tensor own = there(sizes);
  return {.rows = count,
          .tokens = tokens,
          .longest_queries = longest,
          .longest_keys = longest,
          .query_lengths = own,
          .key_lengths = own,
          .query_starts = there(starts),
          .page_table = there(table)};
}

OrderedPlan plan_in_order(const Weights& weights, const PackedTokens& tokens) {
  require_fixed_order(weights);
  const ModelSpec& model = weights.model();
  OrderedPlan plan{.rows = packed_rows(tokens.lengths, weights.device()),
                   .positions = tokens.positions,
                   .places = torch::arange(tokens.tokens(), tokens.positions.options())};
  const auto by = torch::TensorOptions().dtype(torch::kLong).device(weights.device());
  const bool whole = weights.device().is_cuda();  // the kernel looks angles up by position
  plan.rope =
      ordered_rope_table(weights.inverse_frequencies, model.rope.attention_factor,
                         whole ? torch::arange(plan.rows.longest_keys, by) : tokens.positions,
                         scalar_type(weights.dtype));
  return plan;
}

Tensor attend_layer_in_order(const Weights& weights, const LayerRows& rows, const Tensor& normed,
                             const OrderedPlan& plan, const TensorParallel& tp) {
  fused::PagedCache cache;
  const Tensor q = store_packed(weights, rows, normed, plan, tp, cache);
  const HeadRange heads = head_range(weights.model(), weights.layout.tp, weights.coord.tp);
  return attend_in_order(plan.rows, heads, q, cache, weights.model().sliding_window)
      .reshape({q.size(0), -1});
}

}  // namespace tessera
