// Causal attention to keys and values in pages whose result depends on the query's text alone.
//
// Every query, whether it decodes, is a piece of a prompt or lies in a packed batch (a cache with
// one token a page), sees its keys in one order: blocks of 128 keys by position, each a softmax of
// its own; four blocks folded in order are a split, and the splits are folded in order. Masked keys
// add exact zeros, so that rows beside a query and keys behind it change nothing. Two kernels share
// that order (ordered_blocks.cuh). Free of torch and of state.
#pragma once

#include <cstdint>

namespace tessera::kernels {

/// Sizes of a batch. head_dim is 64 or 128; heads is a multiple of kv_heads.
struct OrderedShape {
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t rows = 0, longest_queries = 1;  // sequences, most query tokens of one
  std::int64_t page_tokens = 0, row_pages = 0;
  std::int64_t window = 0;  // keys that a query sees; 0 = all
};

/// On the device. q and out: bf16 [tokens, heads, head_dim]; keys and values: bf16 [pages,
/// kv_heads, page_tokens, head_dim]; int32: query_starts [rows + 1] (nullptr: one query a row),
/// query_lengths and key_lengths [rows], page_table [rows, row_pages]. The last queries of a row
/// are at its last keys.
struct OrderedInput {
  const void *q = nullptr, *keys = nullptr, *values = nullptr;
  const std::int32_t *query_starts = nullptr, *query_lengths = nullptr, *key_lengths = nullptr;
  const std::int32_t* page_table = nullptr;
  void* out = nullptr;
  void* scratch = nullptr;  // ordered_scratch_bytes
};

/// Memory that a batch needs besides, for as long as its kernels run.
std::int64_t ordered_scratch_bytes(const OrderedShape& shape);

/// Throws std::runtime_error for another head_dim.
void ordered_attention(const OrderedShape& shape, const OrderedInput& input, void* stream);

}  // namespace tessera::kernels
