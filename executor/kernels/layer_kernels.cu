// Rotary embedding and SwiGLU: forward and backward.
#include "executor/kernels/device_math.cuh"

namespace tessera::kernels {
namespace {

constexpr int kThreads = 256;

template <typename T, int N>
__global__ void rotate_kernel(const T* x, std::int64_t token_stride, const T* cos, const T* sin,
                              float direction, std::int64_t heads, std::int64_t half, T* y) {
  const std::int64_t token = blockIdx.x;
  const std::int64_t per_head = half / N;
  for (std::int64_t i = threadIdx.x; i < heads * per_head; i += blockDim.x) {
    const std::int64_t head = i / per_head, c = i % per_head * N;
    const T* in = x + token * token_stride + head * 2 * half + c;
    T* out = y + (token * heads + head) * 2 * half + c;
    float a[N], b[N], u[N], v[N];
    load<T, N>(in, a);
    load<T, N>(in + half, b);
    load<T, N>(cos + token * half + c, u);
    load<T, N>(sin + token * half + c, v);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const float first = a[k] * u[k] - direction * b[k] * v[k];
      b[k] = b[k] * u[k] + direction * a[k] * v[k];
      a[k] = first;
    }
    store<T, N>(out, a);
    store<T, N>(out + half, b);
  }
}

__device__ float sigmoid(float x) { return 1.0F / (1.0F + __expf(-x)); }

template <typename T, int N>
__global__ void swiglu_kernel(const T* gate, const T* up, std::int64_t stride, std::int64_t columns,
                              T* y) {
  const std::int64_t row = blockIdx.y;
  const std::int64_t c = (blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x) * N;
  if (c >= columns) return;
  float g[N], u[N];
  load<T, N>(gate + row * stride + c, g);
  load<T, N>(up + row * stride + c, u);
#pragma unroll
  for (int i = 0; i < N; ++i) g[i] = g[i] * sigmoid(g[i]) * u[i];
  store<T, N>(y + row * columns + c, g);
}

template <typename T, int N>
__global__ void swiglu_backward_kernel(const T* gradient, const T* gate, const T* up,
                                       std::int64_t stride, std::int64_t columns, T* d_gate,
                                       T* d_up, std::int64_t out_stride) {
  const std::int64_t row = blockIdx.y;
  const std::int64_t c = (blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x) * N;
  if (c >= columns) return;
  float dy[N], g[N], u[N];
  load<T, N>(gradient + row * columns + c, dy);
  load<T, N>(gate + row * stride + c, g);
  load<T, N>(up + row * stride + c, u);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const float s = sigmoid(g[i]), silu = g[i] * s;
    u[i] *= dy[i] * (s + silu * (1.0F - s));
    g[i] = dy[i] * silu;
  }
  store<T, N>(d_gate + row * out_stride + c, u);
  store<T, N>(d_up + row * out_stride + c, g);
}

/// Rows go to grid.y, which holds 65535: longer inputs in pieces.
template <typename Fn>
void by_rows(std::int64_t rows, Fn fn) {
  constexpr std::int64_t kMost = 65535;
  for (std::int64_t first = 0; first < rows; first += kMost) {
    fn(first, static_cast<unsigned>(rows - first < kMost ? rows - first : kMost));
  }
}

template <int N>
dim3 columns_grid(std::int64_t columns, unsigned rows) {
  const std::int64_t per_block = std::int64_t{kThreads} * N;
  return {static_cast<unsigned>((columns + per_block - 1) / per_block), rows, 1};
}

}  // namespace

void rotate(Real real, const void* x, std::int64_t token_stride, const void* cos, const void* sin,
            float direction, std::int64_t tokens, std::int64_t heads, std::int64_t half, void* y,
            void* stream) {
  if (tokens == 0 || heads == 0) return;
  const int wide = wide_of(real);
  const bool vector = half % wide == 0 && token_stride % wide == 0 && aligned(x) && aligned(y) &&
                      aligned(cos) && aligned(sin);
  dispatch(real, vector, [&](auto zero, auto width) {
    using T = decltype(zero);
    constexpr int N = decltype(width)::value;
    rotate_kernel<T, N><<<static_cast<unsigned>(tokens), kThreads, 0, stream_of(stream)>>>(
        static_cast<const T*>(x), token_stride, static_cast<const T*>(cos),
        static_cast<const T*>(sin), direction, heads, half, static_cast<T*>(y));
  });
  check_launch("rotate");
}

void swiglu(Real real, const void* gate, const void* up, std::int64_t row_stride, std::int64_t rows,
            std::int64_t columns, void* y, void* stream) {
  const int wide = wide_of(real);
  const bool vector =
      columns % wide == 0 && row_stride % wide == 0 && aligned(gate) && aligned(up) && aligned(y);
  dispatch(real, vector, [&](auto zero, auto width) {
    using T = decltype(zero);
    constexpr int N = decltype(width)::value;
    by_rows(rows, [&](std::int64_t first, unsigned count) {
      swiglu_kernel<T, N><<<columns_grid<N>(columns, count), kThreads, 0, stream_of(stream)>>>(
          static_cast<const T*>(gate) + first * row_stride,
          static_cast<const T*>(up) + first * row_stride, row_stride, columns,
          static_cast<T*>(y) + first * columns);
    });
  });
  check_launch("swiglu");
}

void swiglu_backward(Real real, const void* gradient, const void* gate, const void* up,
                     std::int64_t row_stride, std::int64_t rows, std::int64_t columns, void* d_gate,
                     void* d_up, std::int64_t out_stride, void* stream) {
  const int wide = wide_of(real);
  const bool vector = columns % wide == 0 && row_stride % wide == 0 && out_stride % wide == 0 &&
                      aligned(gradient) && aligned(gate) && aligned(up) && aligned(d_gate) &&
                      aligned(d_up);
  dispatch(real, vector, [&](auto zero, auto width) {
    using T = decltype(zero);
    constexpr int N = decltype(width)::value;
    by_rows(rows, [&](std::int64_t first, unsigned count) {
      swiglu_backward_kernel<T, N>
          <<<columns_grid<N>(columns, count), kThreads, 0, stream_of(stream)>>>(
              static_cast<const T*>(gradient) + first * columns,
              static_cast<const T*>(gate) + first * row_stride,
              static_cast<const T*>(up) + first * row_stride, row_stride, columns,
              static_cast<T*>(d_gate) + first * out_stride,
              static_cast<T*>(d_up) + first * out_stride, out_stride);
    });
  });
  check_launch("swiglu_backward");
}

}  // namespace tessera::kernels
