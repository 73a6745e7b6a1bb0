// RMSNorm with residual, rotary embedding, SwiGLU: forward and backward.
#include <cuda_pipeline_primitives.h>

#include <algorithm>

#include "executor/kernels/device_math.cuh"

namespace tessera::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kMostThreads = 1024;  // of a block
constexpr int kRowsAhead = 2;       // of a norm's backward pass; their memory fits sm_80, too
constexpr int kNormBlocks = 528;    // four per multiprocessor of an H200
// Rows of a head: a block of the backward pass is one warp, of which a multiprocessor holds 32.
constexpr std::int64_t kNarrowColumns = 128;
constexpr int kNarrowNormBlocks = 8 * kNormBlocks;

template <typename T, int N>
__global__ void norm_kernel(const T* x, const T* residual, const T* weight, float epsilon,
                            std::int64_t columns, T* sum, T* y, float* r) {
  const std::int64_t start = blockIdx.x * columns;
  const T* in = x + start;
  float squares = 0;
  for (std::int64_t c = threadIdx.x * N; c < columns; c += blockDim.x * N) {
    float a[N];
    load<T, N>(in + c, a);
    if (residual != nullptr) {
      float b[N];
      load<T, N>(residual + start + c, b);
#pragma unroll
      for (int i = 0; i < N; ++i) a[i] = static_cast<float>(static_cast<T>(a[i] + b[i]));
      store<T, N>(sum + start + c, a);
    }
#pragma unroll
    for (int i = 0; i < N; ++i) squares += a[i] * a[i];
  }
  const float scale = rsqrtf(block_sum(squares) / static_cast<float>(columns) + epsilon);
  if (threadIdx.x == 0) r[blockIdx.x] = scale;
  const T* whole = residual != nullptr ? sum + start : in;  // written by the same thread
  for (std::int64_t c = threadIdx.x * N; c < columns; c += blockDim.x * N) {
    float a[N], w[N];
    load<T, N>(whole + c, a);
    load<T, N>(weight + c, w);
#pragma unroll
    for (int i = 0; i < N; ++i) a[i] = a[i] * scale * w[i];
    store<T, N>(y + start + c, a);
  }
}

/// The kernel for rows of at most 32 loads: `lanes` threads, a power of two, share a row. Sums are
/// added in the order of the other kernel.
template <typename T, int N>
__global__ void narrow_norm_kernel(const T* x, const T* residual, const T* weight, float epsilon,
                                   std::int64_t rows, std::int64_t columns, int lanes, T* sum, T* y,
                                   float* r) {
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const std::int64_t row = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / lanes;
  const std::int64_t c = lane * N, at = row * columns + c;
  const bool mine = row < rows && c < columns;
  float a[N] = {}, squares = 0;
  if (mine) {
    load<T, N>(x + at, a);
    if (residual != nullptr) {
      float b[N];
      load<T, N>(residual + at, b);
#pragma unroll
      for (int i = 0; i < N; ++i) a[i] = static_cast<float>(static_cast<T>(a[i] + b[i]));
      store<T, N>(sum + at, a);
    }
#pragma unroll
    for (int i = 0; i < N; ++i) squares += a[i] * a[i];
  }
  for (int step = lanes / 2; step > 0; step /= 2) {
    squares += __shfl_xor_sync(0xffffffffu, squares, step);
  }
  if (!mine) return;
  const float scale = rsqrtf(squares / static_cast<float>(columns) + epsilon);
  if (lane == 0) r[row] = scale;
  float w[N];
  load<T, N>(weight + c, w);
#pragma unroll
  for (int i = 0; i < N; ++i) a[i] = a[i] * scale * w[i];
  store<T, N>(y + at, a);
}

/// One block takes every gridDim-th row; a thread owns its columns' sums in shared memory.
template <typename T, int N>
__global__ void norm_backward_kernel(const T* gradient, const T* passed, const T* x,
                                     const T* weight, const float* r, std::int64_t rows,
                                     std::int64_t columns, T* dx, float* partial) {
  extern __shared__ float sums[];
  for (std::int64_t c = threadIdx.x * N; c < columns; c += blockDim.x * N) {
#pragma unroll
    for (int i = 0; i < N; ++i) sums[c + i] = 0;
  }
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const std::int64_t start = row * columns;
    const float scale = r[row];
    float dot = 0;
    for (std::int64_t c = threadIdx.x * N; c < columns; c += blockDim.x * N) {
      float g[N], a[N], w[N];
      load<T, N>(gradient + start + c, g);
      load<T, N>(x + start + c, a);
      load<T, N>(weight + c, w);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        dot += g[i] * w[i] * a[i];
        sums[c + i] += g[i] * a[i] * scale;
      }
    }
    const float mean = block_sum(dot) * scale * scale / static_cast<float>(columns);
    for (std::int64_t c = threadIdx.x * N; c < columns; c += blockDim.x * N) {
      float g[N], a[N], w[N];
      load<T, N>(gradient + start + c, g);
      load<T, N>(x + start + c, a);
      load<T, N>(weight + c, w);
#pragma unroll
      for (int i = 0; i < N; ++i) g[i] = (g[i] * w[i] - a[i] * mean) * scale;
      if (passed != nullptr) {
        load<T, N>(passed + start + c, a);
#pragma unroll
        for (int i = 0; i < N; ++i) g[i] += a[i];
      }
      store<T, N>(dx + start + c, g);
    }
  }
  for (std::int64_t c = threadIdx.x * N; c < columns; c += blockDim.x * N) {
#pragma unroll
    for (int i = 0; i < N; ++i) partial[blockIdx.x * columns + c + i] = sums[c + i];
  }
}

/// The kernel for rows of at most one 16-byte load per thread: sums stay in registers, and the next
/// rows are on their way to shared memory, where every thread reads what it has asked for itself.
template <typename T, int N>
__global__ void __maxnreg__(48)  // three blocks of 448 threads on a multiprocessor
    norm_backward_ahead(const T* gradient, const T* passed, const T* x, const T* weight,
                        const float* r, std::int64_t rows, std::int64_t columns, T* dx,
                        float* partial) {
  extern __shared__ uint4 staged[];  // [kRowsAhead + 1][3][threads]
  const std::int64_t c = threadIdx.x * N;
  const bool mine = c < columns;
  const auto slot = [&](int stage, int input) {
    return staged + (stage * 3 + input) * blockDim.x + threadIdx.x;
  };
  const auto fetch = [&](std::int64_t row, int stage) {
    if (mine && row < rows) {
      const std::int64_t at = row * columns + c;
      __pipeline_memcpy_async(slot(stage, 0), gradient + at, 16);
      __pipeline_memcpy_async(slot(stage, 1), x + at, 16);
      if (passed != nullptr) __pipeline_memcpy_async(slot(stage, 2), passed + at, 16);
    }
    __pipeline_commit();
  };
  float sums[N] = {};
  std::int64_t ahead = blockIdx.x;
  for (int stage = 0; stage < kRowsAhead; ++stage, ahead += gridDim.x) fetch(ahead, stage);
  float scale = blockIdx.x < rows ? r[blockIdx.x] : 0;
  int stage = 0;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x, ahead += gridDim.x) {
    fetch(ahead, (stage + kRowsAhead) % (kRowsAhead + 1));
    const float next_scale = row + gridDim.x < rows ? r[row + gridDim.x] : 0;
    __pipeline_wait_prior(kRowsAhead);
    float g[N] = {}, a[N] = {}, dot = 0;
    if (mine) {
      float w[N];
      load<T, N>(reinterpret_cast<const T*>(slot(stage, 0)), g);
      load<T, N>(reinterpret_cast<const T*>(slot(stage, 1)), a);
      load<T, N>(weight + c, w);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        sums[i] += g[i] * a[i] * scale;
        g[i] *= w[i];
        dot += g[i] * a[i];
      }
    }
    const float mean = block_sum(dot) * scale * scale / static_cast<float>(columns);
#pragma unroll
    for (int i = 0; i < N; ++i) g[i] = (g[i] - a[i] * mean) * scale;
    if (mine && passed != nullptr) {
      load<T, N>(reinterpret_cast<const T*>(slot(stage, 2)), a);
#pragma unroll
      for (int i = 0; i < N; ++i) g[i] += a[i];
    }
    if (mine) store<T, N>(dx + row * columns + c, g);
    scale = next_scale;
    stage = (stage + 1) % (kRowsAhead + 1);
  }
  if (mine) store<float, N>(partial + blockIdx.x * columns + c, sums);
}

/// 32 columns per block; warps share the blocks' rows.
__global__ void add_columns_kernel(const float* partial, std::int64_t blocks, std::int64_t columns,
                                   float* out) {
  __shared__ float shared[32][33];
  const std::int64_t column = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  if (column < columns) {
    for (std::int64_t row = threadIdx.y; row < blocks; row += 32) {
      sum += partial[row * columns + column];
    }
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  sum = shared[threadIdx.x][threadIdx.y];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  const std::int64_t mine = blockIdx.x * 32 + threadIdx.y;
  if (threadIdx.x == 0 && mine < columns) out[mine] += sum;
}

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

void rms_norm(Real real, const void* x, const void* residual, const void* weight, float epsilon,
              std::int64_t rows, std::int64_t columns, void* sum, void* y, float* r, void* stream) {
  if (rows == 0) return;
  const bool vector = columns % wide_of(real) == 0 && aligned(x) && aligned(y) && aligned(weight) &&
                      aligned(residual) && aligned(sum);
  dispatch(real, vector, [&](auto zero, auto width) {
    using T = decltype(zero);
    constexpr int N = decltype(width)::value;
    const auto* in = static_cast<const T*>(x);
    const auto* add = static_cast<const T*>(residual);
    const auto* gain = static_cast<const T*>(weight);
    if (N > 1 && columns <= 32 * N) {
      int lanes = 1;
      while (lanes * N < columns) lanes *= 2;
      const std::int64_t blocks = (rows * lanes + kThreads - 1) / kThreads;
      narrow_norm_kernel<T, N><<<static_cast<unsigned>(blocks), kThreads, 0, stream_of(stream)>>>(
          in, add, gain, epsilon, rows, columns, lanes, static_cast<T*>(sum), static_cast<T*>(y),
          r);
      return;
    }
    norm_kernel<T, N><<<static_cast<unsigned>(rows), kThreads, 0, stream_of(stream)>>>(
        in, add, gain, epsilon, columns, static_cast<T*>(sum), static_cast<T*>(y), r);
  });
  check_launch("rms_norm");
}

std::int64_t rms_norm_blocks(std::int64_t rows, std::int64_t columns) {
  return std::min<std::int64_t>(rows, columns <= kNarrowColumns ? kNarrowNormBlocks : kNormBlocks);
}

void rms_norm_backward(Real real, const void* gradient, const void* passed, const void* x,
                       const void* weight, const float* r, std::int64_t rows, std::int64_t columns,
                       void* dx, float* partial, float* weight_gradient, void* stream) {
  if (rows == 0) return;
  const bool vector = columns % wide_of(real) == 0 && aligned(gradient) && aligned(passed) &&
                      aligned(x) && aligned(weight) && aligned(dx);
  const std::int64_t blocks = rms_norm_blocks(rows, columns);
  dispatch(real, vector, [&](auto zero, auto width) {
    using T = decltype(zero);
    constexpr int N = decltype(width)::value;
    auto* kernel = norm_backward_kernel<T, N>;
    int threads = kThreads, shared = static_cast<int>(columns * sizeof(float));
    if constexpr (N > 1) {
      if (columns <= std::int64_t{kMostThreads} * N) {
        kernel = norm_backward_ahead<T, N>;
        threads = static_cast<int>((columns / N + 31) / 32 * 32);
        shared = threads * (kRowsAhead + 1) * 3 * 16;
      }
    }
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    kernel<<<static_cast<unsigned>(blocks), threads, static_cast<std::size_t>(shared),
             stream_of(stream)>>>(static_cast<const T*>(gradient), static_cast<const T*>(passed),
                                  static_cast<const T*>(x), static_cast<const T*>(weight), r, rows,
                                  columns, static_cast<T*>(dx), partial);
  });
  add_columns_kernel<<<static_cast<unsigned>((columns + 31) / 32), dim3(32, 32), 0,
                       stream_of(stream)>>>(partial, blocks, columns, weight_gradient);
  check_launch("rms_norm_backward");
}

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
