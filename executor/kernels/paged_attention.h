// Attention of new tokens to a cache of keys and values in pages, by cuDNN's fused kernels.
//
// bf16. A row is a sequence: its `longest_queries` or fewer new tokens are the last of its
// key_lengths[row] tokens, and each sees the tokens up to itself (causal, aligned to the end).
// Query heads are grouped over the key heads. Graphs are built once per shape (0.1 to 0.9 s for the
// first, tens of ms later) and kept; execution enqueues, allocates nothing and may be captured.
// One object per thread and device. No torch here.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>

namespace tessera::kernels {

struct PagedShape {
  std::int64_t heads = 1, kv_heads = 1, head_dim = 128;
  std::int64_t rows = 1;
  std::int64_t longest_queries = 1;
  std::int64_t pages = 1, page_tokens = 64;  // of the cache
  std::int64_t row_pages = 1;                // entries of a row's page table
  float scale = 1;
  auto operator<=>(const PagedShape&) const = default;
};

/// Device memory. q and out are dense, [tokens, heads, head_dim]: row i's tokens begin at element
/// query_starts[i] (int32 [rows + 1]; not read where longest_queries is 1, when token i is row i).
/// keys, values: [pages, kv_heads, page_tokens, head_dim]; int32 query_lengths, key_lengths [rows];
/// page_table: int32 [rows, row_pages].
struct PagedOperands {
  const void *q = nullptr, *keys = nullptr, *values = nullptr;
  const void *query_starts = nullptr, *query_lengths = nullptr, *key_lengths = nullptr;
  const void* page_table = nullptr;
  void* out = nullptr;
};

class PagedAttention {
 public:
  PagedAttention();
  ~PagedAttention();

  std::int64_t workspace_bytes(const PagedShape& shape);
  void forward(const PagedShape& shape, const PagedOperands& operands, void* workspace,
               void* stream);

 private:
  struct Graphs;
  std::unique_ptr<Graphs> graphs_;
};

}  // namespace tessera::kernels
