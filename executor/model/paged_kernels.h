// The CUDA kernels of generation on tensors: heads that are rotated and stored in pages, attention
// to the pages, draws.
//
// Every function's reference is the LibTorch path of its caller. They allocate through torch alone
// and may be captured in a graph. On torch's current stream; one thread per device.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>

#include "executor/comm/communicator.h"

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

/// Draw i is from row rows[i] of logits with uniforms[i] and becomes last_tokens[slots[i]].
struct DrawRows {
  torch::Tensor rows, uniforms, slots;  // int64, fp64, int64 [draws]
  torch::Tensor last_tokens;            // int64
};
struct Drawn {
  torch::Tensor tokens;     // int32 [draws]; -1 where the row is no row of logits
  torch::Tensor log_probs;  // fp32 [draws]
};
/// See kernels::draw_tokens. logits: fp32 [rows, vocabulary]; temperature 0 = greedy.
Drawn draw_tokens(double temperature, std::int64_t least_weight, const torch::Tensor& logits,
                  const DrawRows& draws);
/// The same, and the same bits, where each rank of `group` has some columns of the rows, in the
/// order of the ranks: `logits` are this rank's, the first of them column `first` of the
/// vocabulary. Collective, on torch's stream; what travels is a few words of a draw.
Drawn draw_over_columns(double temperature, std::int64_t least_weight, const torch::Tensor& logits,
                        std::int64_t first, const DrawRows& draws, Communicator& group);

}  // namespace tessera::fused
