// Loops over fp32 rows on the CPU, for models so small that a tensor library's per-operator cost
// would dominate. Row-major, contiguous. Single thread; no torch here.
#pragma once

#include <cstdint>

namespace tessera {

/// y = x * r * weight with r = 1 / sqrt(mean(x^2) + epsilon); r is kept for the backward pass.
void rms_norm_rows(const float* x, const float* weight, float epsilon, std::int64_t rows,
                   std::int64_t columns, float* y, float* r);

/// Gradients of the above; `weight_gradient` is added to.
void rms_norm_rows_backward(const float* gradient, const float* x, const float* weight,
                            const float* r, std::int64_t rows, std::int64_t columns,
                            float* x_gradient, float* weight_gradient);

/// Rotates pairs (i, i + half) of every head by the token's angles; `direction` -1 rotates back.
/// x has `token_stride` elements from token to token, y is contiguous.
void rotate_heads(const float* x, std::int64_t token_stride, const float* cos, const float* sin,
                  float direction, std::int64_t tokens, std::int64_t heads, std::int64_t half,
                  float* y);

}  // namespace tessera
