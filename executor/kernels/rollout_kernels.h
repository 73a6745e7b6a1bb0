// CUDA kernels of generation: rotary embedding that stores keys and values in pages, and drawing of
// tokens.
//
// Plain functions of device pointers, sizes and a stream (cudaStream_t); they enqueue and return,
// allocate nothing and may be captured in a graph. Sizes are elements. No torch here; the reference
// of each is the LibTorch path in executor/model and executor/rollout.
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

/// How tokens are drawn: by rl/draw_weight.h, as executor/rl/sampling.h has it without top-k and
/// top-p.
struct DrawOptions {
  float inverse_temperature = 1;
  double temperature = 1;
  bool greedy = false;
  std::int64_t least_weight = 0;  // smaller integer weights are not drawn (least_weight); 0 = all
};

/// Where draws go: [draws] each; `last_tokens` is indexed by `slots`.
struct DrawTargets {
  std::int32_t* tokens = nullptr;  // -1 where the row is no row of logits
  float* log_probs = nullptr;
  std::int64_t* last_tokens = nullptr;
};

/// Bytes of scratch for `draws` draws.
std::int64_t draw_scratch_bytes(std::int64_t draws);

/// Draws from row rows[i] of logits [.., columns] (fp32) with uniforms[i], for each of `draws`.
void draw_tokens(const DrawOptions& options, const float* logits, std::int64_t columns,
                 const std::int64_t* rows, const double* uniforms, const std::int64_t* slots,
                 std::int64_t draws, const DrawTargets& targets, void* scratch, void* stream);

/// The log-probs that draw_tokens reports of tokens that are given: tokens[i] from row rows[i].
void score_tokens(const DrawOptions& options, const float* logits, std::int64_t columns,
                  const std::int64_t* rows, const std::int64_t* tokens, std::int64_t count,
                  float* log_probs, void* scratch, void* stream);

}  // namespace tessera::kernels
