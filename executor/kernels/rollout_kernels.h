// CUDA kernel of generation: rotary embedding that stores keys and values in pages.
//
// A plain function of device pointers, sizes and a stream (cudaStream_t); it enqueues and returns,
// allocates nothing and may be captured in a graph. Sizes are elements. No torch here; the
// reference is the LibTorch path in executor/model.
#pragma once

#include <cstdint>

#include "executor/kernels/kernels.h"

namespace tessera::kernels {

/// Queries, keys and values of `tokens` tokens: dense heads, `stride` elements from token to token
/// for all three.
struct HeadRows {
  const void *q = nullptr, *k = nullptr, *v = nullptr;
  std::int64_t stride = 0;
  std::int64_t heads = 0, kv_heads = 0, half = 0;  // half = head_dim / 2
  /// Weights [head_dim] of RMS norms of every query and key head before the rotation; nullptr:
  /// none.
  const void *q_norm = nullptr, *k_norm = nullptr;
  float epsilon = 0;
};

/// Rotates by the angles cos, sin [positions, half] of each token's position; queries go to q_out
/// [tokens, heads, head_dim], keys and values to token places[t] of their caches, which are
/// [pages, kv_heads, page_tokens, head_dim] with place = page * page_tokens + token.
void rotate_and_store(Real real, const HeadRows& rows, const void* cos, const void* sin,
                      const std::int64_t* positions, const std::int64_t* places,
                      std::int64_t tokens, std::int64_t page_tokens, void* q_out, void* keys,
                      void* values, void* stream);

}  // namespace tessera::kernels
