#include "executor/tensor/cpu_kernels.h"

#include <cmath>

namespace tessera {

void rms_norm_rows(const float* x, const float* weight, float epsilon, std::int64_t rows,
                   std::int64_t columns, float* y, float* r) {
  for (std::int64_t row = 0; row < rows; ++row, x += columns, y += columns) {
    float squares = 0;
#pragma omp simd reduction(+ : squares)
    for (std::int64_t i = 0; i < columns; ++i) squares += x[i] * x[i];
    const float scale = 1.0F / std::sqrt(squares / static_cast<float>(columns) + epsilon);
    r[row] = scale;
#pragma omp simd
    for (std::int64_t i = 0; i < columns; ++i) y[i] = x[i] * scale * weight[i];
  }
}

void rms_norm_rows_backward(const float* gradient, const float* x, const float* weight,
                            const float* r, std::int64_t rows, std::int64_t columns,
                            float* x_gradient, float* weight_gradient) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float scale = r[row];
    float dot = 0;
#pragma omp simd reduction(+ : dot)
    for (std::int64_t i = 0; i < columns; ++i) dot += gradient[i] * weight[i] * x[i];
    const float pull = dot * scale * scale / static_cast<float>(columns);
#pragma omp simd
    for (std::int64_t i = 0; i < columns; ++i) {
      x_gradient[i] = scale * (gradient[i] * weight[i] - x[i] * pull);
      weight_gradient[i] += gradient[i] * x[i] * scale;
    }
    gradient += columns, x += columns, x_gradient += columns;
  }
}

void rotate_heads(const float* x, std::int64_t token_stride, const float* cos, const float* sin,
                  float direction, std::int64_t tokens, std::int64_t heads, std::int64_t half,
                  float* y) {
  for (std::int64_t token = 0; token < tokens; ++token, cos += half, sin += half) {
    const float* in = x + token * token_stride;
    for (std::int64_t head = 0; head < heads; ++head, in += 2 * half, y += 2 * half) {
#pragma omp simd
      for (std::int64_t i = 0; i < half; ++i) {
        const float s = direction * sin[i];
        y[i] = in[i] * cos[i] - in[i + half] * s;
        y[i + half] = in[i + half] * cos[i] + in[i] * s;
      }
    }
  }
}

}  // namespace tessera
