#include "executor/model/paged_kernels.h"

#include <bit>
#include <cmath>
#include <map>

#include "executor/kernels/draw_kernels.h"
#include "executor/kernels/ordered_attention.h"
#include "executor/kernels/paged_attention.h"
#include "executor/kernels/rollout_kernels.h"
#include "executor/tensor/kernel_calls.h"

namespace tessera::fused {
namespace {

using torch::Tensor;

/// One per device and calling thread; never destroyed, as threads may end after cuDNN.
kernels::PagedAttention& attention_of(const Tensor& x) {
  thread_local auto* const by_device = new std::map<int, kernels::PagedAttention>;
  return (*by_device)[x.device().index()];
}

}  // namespace

Tensor rotate_and_store(const HeadColumns& heads, const Tensor& cos, const Tensor& sin,
                        const Tensor& positions, const Tensor& places, const PagedCache& cache) {
  const std::int64_t dim = cache.keys.size(3), tokens = heads.q.size(0);
  TORCH_CHECK(heads.q.stride(0) == heads.k.stride(0) && heads.k.stride(0) == heads.v.stride(0));
  const kernels::HeadRows rows{.q = heads.q.data_ptr(),
                               .k = heads.k.data_ptr(),
                               .v = heads.v.data_ptr(),
                               .stride = heads.q.stride(0),
                               .heads = heads.q.size(1) / dim,
                               .kv_heads = heads.k.size(1) / dim,
                               .half = dim / 2,
                               .q_norm = data_of(heads.q_norm),
                               .k_norm = data_of(heads.k_norm),
                               .epsilon = static_cast<float>(heads.epsilon)};
  Tensor q = empty_of(heads.q, {tokens, rows.heads, dim});
  kernels::rotate_and_store(real_of(heads.q), rows, cos.data_ptr(), sin.data_ptr(),
                            positions.const_data_ptr<std::int64_t>(),
                            places.const_data_ptr<std::int64_t>(), tokens, cache.keys.size(2),
                            q.data_ptr(), cache.keys.data_ptr(), cache.values.data_ptr(),
                            stream_for(heads.q));
  return q;
}

Tensor attend_paged(const PagedRows& rows, const Tensor& q, const PagedCache& cache) {
  const auto longest =
      static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(rows.longest_queries)));
  const kernels::PagedShape shape{.heads = q.size(1),
                                  .kv_heads = cache.keys.size(1),
                                  .head_dim = q.size(2),
                                  .rows = rows.rows,
                                  .longest_queries = longest,
                                  .pages = cache.keys.size(0),
                                  .page_tokens = cache.keys.size(2),
                                  .row_pages = rows.page_table.size(1),
                                  .scale = 1.0F / std::sqrt(static_cast<float>(q.size(2)))};
  kernels::PagedAttention& attention = attention_of(q);
  Tensor out = empty_of(q, q.sizes());
  Tensor starts;
  if (longest > 1) starts = rows.query_starts * (q.size(1) * q.size(2));
  const Tensor scratch = torch::empty({std::max<std::int64_t>(attention.workspace_bytes(shape), 1)},
                                      q.options().dtype(at::kByte));
  attention.forward(shape,
                    {.q = q.data_ptr(),
                     .keys = cache.keys.data_ptr(),
                     .values = cache.values.data_ptr(),
                     .query_starts = data_of(starts),
                     .query_lengths = rows.query_lengths.data_ptr(),
                     .key_lengths = rows.key_lengths.data_ptr(),
                     .page_table = rows.page_table.data_ptr(),
                     .out = out.data_ptr()},
                    scratch.data_ptr(), stream_for(q));
  return out;
}

Tensor attend_in_order(const PagedRows& rows, const Tensor& q, const PagedCache& cache,
                       std::int64_t window) {
  const Tensor in = q.contiguous();
  Tensor out = empty_of(in, in.sizes());
  const kernels::OrderedShape shape{.heads = q.size(1),
                                    .kv_heads = cache.keys.size(1),
                                    .head_dim = q.size(2),
                                    .rows = rows.rows,
                                    .longest_queries = rows.longest_queries,
                                    .page_tokens = cache.keys.size(2),
                                    .row_pages = rows.page_table.size(1),
                                    .window = window};
  const Tensor scratch =
      torch::empty({kernels::ordered_scratch_bytes(shape)}, in.options().dtype(at::kByte));
  kernels::ordered_attention(
      shape,
      {.q = in.data_ptr(),
       .keys = cache.keys.data_ptr(),
       .values = cache.values.data_ptr(),
       .query_starts =
           rows.longest_queries > 1 ? rows.query_starts.const_data_ptr<std::int32_t>() : nullptr,
       .query_lengths = rows.query_lengths.const_data_ptr<std::int32_t>(),
       .key_lengths = rows.key_lengths.const_data_ptr<std::int32_t>(),
       .page_table = rows.page_table.const_data_ptr<std::int32_t>(),
       .out = out.data_ptr(),
       .scratch = scratch.data_ptr()},
      stream_for(q));
  return out;
}

Tensor drawn_log_probs(double temperature, const Tensor& logits, const Tensor& tokens) {
  const std::int64_t rows = logits.size(0);
  const double kept = temperature == 0 ? 1.0 : temperature;
  const Tensor in = logits.contiguous(), given = tokens.contiguous();
  const Tensor places = torch::arange(rows, tokens.options());
  Tensor log_probs = fp32_like(logits, {rows});
  const Tensor scratch =
      torch::empty({std::max<std::int64_t>(kernels::draw_scratch_bytes(rows), 1)},
                   logits.options().dtype(at::kByte));
  kernels::score_tokens({.temperature = kept}, in.const_data_ptr<float>(), in.size(1),
                        places.const_data_ptr<std::int64_t>(), given.const_data_ptr<std::int64_t>(),
                        rows, log_probs.data_ptr<float>(), scratch.data_ptr(), stream_for(logits));
  return log_probs;
}

Drawn draw_tokens(double temperature, std::int64_t least_weight, const Tensor& logits,
                  const Tensor& rows, const Tensor& uniforms, const Tensor& slots,
                  Tensor& last_tokens) {
  const std::int64_t draws = rows.size(0);
  const bool greedy = temperature == 0;
  const double kept = greedy ? 1.0 : temperature;
  Drawn drawn{torch::empty({draws}, logits.options().dtype(at::kInt)), fp32_like(logits, {draws})};
  const Tensor scratch =
      torch::empty({std::max<std::int64_t>(kernels::draw_scratch_bytes(draws), 1)},
                   logits.options().dtype(at::kByte));
  kernels::draw_tokens({.temperature = kept, .greedy = greedy, .least_weight = least_weight},
                       logits.const_data_ptr<float>(), logits.size(1),
                       rows.const_data_ptr<std::int64_t>(), uniforms.const_data_ptr<double>(),
                       slots.const_data_ptr<std::int64_t>(), draws,
                       {.tokens = drawn.tokens.data_ptr<std::int32_t>(),
                        .log_probs = drawn.log_probs.data_ptr<float>(),
                        .last_tokens = last_tokens.data_ptr<std::int64_t>()},
                       scratch.data_ptr(), stream_for(logits));
  return drawn;
}

}  // namespace tessera::fused
