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

kernels::DrawOptions options_of(double temperature, std::int64_t least_weight) {
  const bool greedy = temperature == 0;
  return {
      .temperature = greedy ? 1.0 : temperature, .greedy = greedy, .least_weight = least_weight};
}

Drawn room_for_draws(const Tensor& logits, std::int64_t draws) {
  return {torch::empty({draws}, logits.options().dtype(at::kInt)), fp32_like(logits, {draws})};
}

kernels::DrawTargets targets_of(const Drawn& drawn, const DrawRows& draws) {
  return {.tokens = drawn.tokens.data_ptr<std::int32_t>(),
          .log_probs = drawn.log_probs.data_ptr<float>(),
          .last_tokens = draws.last_tokens.data_ptr<std::int64_t>()};
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
                  const DrawRows& draws) {
  const std::int64_t count = draws.rows.size(0);
  const Drawn drawn = room_for_draws(logits, count);
  const Tensor scratch =
      torch::empty({std::max<std::int64_t>(kernels::draw_scratch_bytes(count), 1)},
                   logits.options().dtype(at::kByte));
  kernels::draw_tokens(options_of(temperature, least_weight), logits.const_data_ptr<float>(),
                       logits.size(1), draws.rows.const_data_ptr<std::int64_t>(),
                       draws.uniforms.const_data_ptr<double>(),
                       draws.slots.const_data_ptr<std::int64_t>(), count, targets_of(drawn, draws),
                       scratch.data_ptr(), stream_for(logits));
  return drawn;
}

Drawn draw_over_columns(double temperature, std::int64_t least_weight, const Tensor& logits,
                        std::int64_t first, const DrawRows& draws, Communicator& group) {
  const kernels::DrawOptions options = options_of(temperature, least_weight);
  const std::int64_t count = draws.rows.size(0), ranks = group.size();
  const kernels::ColumnShare share{.logits = logits.const_data_ptr<float>(),
                                   .columns = logits.size(1),
                                   .first = first,
                                   .rank = group.rank(),
                                   .ranks = group.size()};
  const auto* rows = draws.rows.const_data_ptr<std::int64_t>();
  void* const stream = stream_for(logits);
  const auto parts = [&](std::int64_t numbers, at::ScalarType type) {
    return torch::empty({ranks, count, kernels::kDrawSegments, numbers},
                        logits.options().dtype(type));
  };
  const auto gather = [&](const Tensor& all, DType type) {
    group.all_gather(all[share.rank].data_ptr(), all.data_ptr(),
                     static_cast<std::size_t>(all[share.rank].numel()), type);
  };
  const Tensor highest = parts(1, at::kFloat), weights = parts(2, at::kLong);
  kernels::share_highest(share, rows, count, highest[share.rank].data_ptr<float>(), stream);
  gather(highest, DType::fp32);
  const auto weights_at = [](const Tensor& x) {
    return reinterpret_cast<kernels::ShareWeights*>(x.data_ptr<std::int64_t>());
  };
  const auto* tops = highest.const_data_ptr<float>();
  kernels::share_weights(options, share, rows, count, tops, weights_at(weights[share.rank]),
                         stream);
  gather(weights, DType::int64);
  const Tensor words = torch::zeros({count}, logits.options().dtype(at::kLong));
  kernels::share_draws(options, share, rows, draws.uniforms.const_data_ptr<double>(), count, tops,
                       weights_at(weights), words.data_ptr<std::int64_t>(), stream);
  group.all_reduce(words.data_ptr(), static_cast<std::size_t>(count), DType::int64, ReduceOp::sum);
  const Drawn drawn = room_for_draws(logits, count);
  kernels::put_draws(words.const_data_ptr<std::int64_t>(),
                     draws.slots.const_data_ptr<std::int64_t>(), count, targets_of(drawn, draws),
                     stream);
  return drawn;
}

}  // namespace tessera::fused
