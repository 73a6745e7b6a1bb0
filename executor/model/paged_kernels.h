// The CUDA kernels of generation on tensors: heads that are rotated and stored in pages, attention
// to the pages, draws.
//
// Every function's reference is the LibTorch path of its caller. They allocate through torch alone
// and may be captured in a graph. On torch's current stream; one thread per device.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>

namespace tessera::fused {

/// One layer's keys and values, [pages, kv_heads, page_tokens, head_dim] each.
struct PagedCache {
  torch::Tensor keys, values;
};

/// Rows of a batch, one per sequence: each has new tokens, which follow one another in the batch.
struct PagedRows {
  std::int64_t rows = 0, tokens = 0;
  std::int64_t longest_queries = 1, longest_keys = 1;  // bounds, in tokens
  torch::Tensor query_lengths, key_lengths;            // int32 [rows]; keys include the new tokens
  torch::Tensor query_starts;                          // int32 [rows + 1], in tokens
  torch::Tensor page_table;                            // int32 [rows, pages of a row]
};

/// Heads of one column-parallel product, [tokens, heads * head_dim] each with one row stride.
struct HeadColumns {
  torch::Tensor q, k, v;
  torch::Tensor q_norm, k_norm;  // undefined: none
  double epsilon = 0;
};

/// See kernels::rotate_and_store; cos, sin [positions, head_dim / 2] of the heads' type, positions
/// and places int64 [tokens]. Returns the queries, [tokens, heads, head_dim].
torch::Tensor rotate_and_store(const HeadColumns& heads, const torch::Tensor& cos,
                               const torch::Tensor& sin, const torch::Tensor& positions,
                               const torch::Tensor& places, const PagedCache& cache);

/// q: the rows' queries [tokens, heads, head_dim]; the result has its shape.
torch::Tensor attend_paged(const PagedRows& rows, const torch::Tensor& q, const PagedCache& cache);

/// The same by kernels::ordered_attention: a query's bits depend on its own text alone. bf16; keys
/// up to the query's own, the last `window` of them where it is not 0.
torch::Tensor attend_in_order(const PagedRows& rows, const torch::Tensor& q,
                              const PagedCache& cache, std::int64_t window);

/// See kernels::score_tokens. logits: fp32 [rows, vocabulary]; tokens int64 [rows]; fp32 [rows].
torch::Tensor drawn_log_probs(double temperature, const torch::Tensor& logits,
                              const torch::Tensor& tokens);

struct Drawn {
  torch::Tensor tokens;     // int32 [draws]; -1 where the row is no row of logits
  torch::Tensor log_probs;  // fp32 [draws]
};
/// See kernels::draw_tokens. logits: fp32 [rows, vocabulary]; rows and slots int64, uniforms fp64
/// [draws]; temperature 0 = greedy. Writes last_tokens[slots] (int64).
Drawn draw_tokens(double temperature, std::int64_t least_weight, const torch::Tensor& logits,
                  const torch::Tensor& rows, const torch::Tensor& uniforms,
                  const torch::Tensor& slots, torch::Tensor& last_tokens);

}  // namespace tessera::fused
