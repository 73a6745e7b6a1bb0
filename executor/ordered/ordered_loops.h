// Sums of fp32 rows on the CPU in an order that the row alone decides: its bits are the same
// whatever rows are computed beside it, on any processor.
//
// Every product and every sum is rounded once (never fused), in the order that a function states.
// Row-major; no torch here. Several threads share the rows; results do not depend on how many.
#pragma once

#include <cstdint>
#include <span>

namespace tessera {

/// Partial sums of a dot product: number l adds up elements l, l + 16, l + 32, ... in that order.
inline constexpr std::int64_t kDotLanes = 16;

/// y[r][o] = sum over k of x[r][k] * w[o][k], the weights being stored [outputs, inputs]: the
/// partial sums of kDotLanes, added in pairs (l, l + 8), then (l, l + 4), (l, l + 2), (l, l + 1).
/// `x_stride` and `y_stride` are elements from row to row.
struct ProductShape {
  std::int64_t rows = 0, inputs = 0, outputs = 0, x_stride = 0, y_stride = 0;
};
void ordered_dots(const ProductShape& shape, const float* x, const float* w, float* y, int threads);

/// The same of weights stored [inputs, outputs], whose rows are `w_stride` elements apart: one sum
/// in the order of k.
void ordered_sums(const ProductShape& shape, const float* x, const float* w, std::int64_t w_stride,
                  float* y, int threads);

/// y = silu(gate) * up, [rows, columns] with one stride for both inputs; y is dense.
void ordered_swiglu(const float* gate, const float* up, std::int64_t stride, std::int64_t rows,
                    std::int64_t columns, float* y, int threads);

/// A cache of keys or values in pages, [pages, kv_heads, page_tokens, head_dim]; a token's place is
/// page * page_tokens + token within it. With page_tokens 1 these are packed tokens.
struct PagedKeys {
  const float *keys = nullptr, *values = nullptr;
  std::int64_t kv_heads = 0, page_tokens = 0, head_dim = 0;
};

/// One query token: which keys it sees, and where they lie.
struct OrderedQuery {
  std::int64_t position = 0;            // sees keys up to this one
  const std::int32_t* pages = nullptr;  // of its text, in order
};

/// Attention of every query [queries, heads, head_dim] to keys (position - window, position], all
/// of them where window is 0. Scores are ordered dots; weights are exp(score - largest); their sum
/// and the sum of the weighted values run in the order of the keys. kv_of_head[h] is the KV head of
/// query head h. The result has q's shape.
void ordered_attention(std::span<const OrderedQuery> queries,
                       std::span<const std::int64_t> kv_of_head, std::int64_t window,
                       const PagedKeys& cache, const float* q, float* out, int threads);

}  // namespace tessera
