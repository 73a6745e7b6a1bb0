// RMSNorm with residual: forward and backward, for rows of a layer's width and for those of a head.
#include <cuda_pipeline_primitives.h>

#include "executor/kernels/device_math.cuh"

namespace tessera::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kMostThreads = 1024;  // of a block
constexpr int kRowsAhead = 2;       // of a norm's backward pass; their memory fits sm_80, too
constexpr int kNormBlocks = 528;    // four per multiprocessor of an H200

/// What a norm reads at `at`: x, or its sum with the residual, which is kept.
template <typename T, int N>
__device__ void load_sum(const T* x, const T* residual, std::int64_t at, T* sum, float (&a)[N]) {
  load<T, N>(x + at, a);
  if (residual == nullptr) return;
  float b[N];
  load<T, N>(residual + at, b);
#pragma unroll
  for (int i = 0; i < N; ++i) a[i] = static_cast<float>(static_cast<T>(a[i] + b[i]));
  store<T, N>(sum + at, a);
}

template <typename T, int N>
__global__ void norm_kernel(const T* x, const T* residual, const T* weight, float epsilon,
                            std::int64_t columns, T* sum, T* y, float* r) {
  const std::int64_t start = blockIdx.x * columns;
  float squares = 0;
  for (std::int64_t c = threadIdx.x * N; c < columns; c += blockDim.x * N) {
    float a[N];
    load_sum<T, N>(x, residual, start + c, sum, a);
#pragma unroll
    for (int i = 0; i < N; ++i) squares += a[i] * a[i];
  }
  const float scale = rsqrtf(block_sum(squares) / static_cast<float>(columns) + epsilon);
  if (threadIdx.x == 0) r[blockIdx.x] = scale;
  // Written by the same thread.
  const T* whole = (residual != nullptr ? sum : x) + start;
  for (std::int64_t c = threadIdx.x * N; c < columns; c += blockDim.x * N) {
    float a[N], w[N];
    load<T, N>(whole + c, a);
    load<T, N>(weight + c, w);
#pragma unroll
    for (int i = 0; i < N; ++i) a[i] = a[i] * scale * w[i];
    store<T, N>(y + start + c, a);
  }
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

/// Threads that share a row of at most 32 loads: a power of two, so that a warp has whole rows.
template <int N>
int lanes_of(std::int64_t columns) {
  int lanes = 1;
  while (lanes * N < columns) lanes *= 2;
  return lanes;
}

/// True where narrow rows have kernels of their own: a block of the others has one row, of which
/// 128 columns (a head) would occupy 16 of 256 threads.
template <int N>
bool is_narrow(std::int64_t columns) {
  return N > 1 && columns <= 32 * N;
}

__device__ inline float lanes_sum(float x, int lanes) {
  for (int step = lanes / 2; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffU, x, step);
  return x;
}

/// norm_kernel for narrow rows.
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
    load_sum<T, N>(x, residual, at, sum, a);
#pragma unroll
    for (int i = 0; i < N; ++i) squares += a[i] * a[i];
  }
  squares = lanes_sum(squares, lanes);
  if (!mine) return;
  const float scale = rsqrtf(squares / static_cast<float>(columns) + epsilon);
  if (lane == 0) r[row] = scale;
  float w[N];
  load<T, N>(weight + c, w);
#pragma unroll
  for (int i = 0; i < N; ++i) a[i] = a[i] * scale * w[i];
  store<T, N>(y + at, a);
}

/// norm_backward_kernel for narrow rows: a block has kThreads / lanes of them at a time, a thread
/// the sums of its own columns, and the next rows are on their way while it computes.
template <typename T, int N>
__global__ void __launch_bounds__(kThreads, 4)
    narrow_norm_backward(const T* gradient, const T* passed, const T* x, const T* weight,
                         const float* r, std::int64_t rows, std::int64_t columns, int lanes, T* dx,
                         float* partial) {
  __shared__ float shared[kThreads * N];
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const std::int64_t c = lane * N, step = std::int64_t{gridDim.x} * (kThreads / lanes);
  std::int64_t row = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) / lanes;
  const bool inside = c < columns;
  Pack<T, N> next_g = {}, next_x = {}, next_passed = {};
  float next_scale = 0;
  const auto fetch = [&](std::int64_t at) {
    if (!inside || at >= rows) return;
    next_g = *reinterpret_cast<const Pack<T, N>*>(gradient + at * columns + c);
    next_x = *reinterpret_cast<const Pack<T, N>*>(x + at * columns + c);
    if (passed != nullptr) {
      next_passed = *reinterpret_cast<const Pack<T, N>*>(passed + at * columns + c);
    }
    next_scale = r[at];
  };
  float w[N] = {}, sums[N] = {};
  if (inside) load<T, N>(weight + c, w);
  fetch(row);
  // Rows of a block end together, as its threads add up what they share.
  for (std::int64_t first = row - threadIdx.x / lanes; first < rows; first += step, row += step) {
    const bool mine = inside && row < rows;
    const float scale = next_scale;
    float g[N] = {}, a[N] = {}, p[N] = {}, dot = 0;
    if (mine) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        g[i] = static_cast<float>(next_g.v[i]);
        a[i] = static_cast<float>(next_x.v[i]);
        p[i] = static_cast<float>(next_passed.v[i]);
        sums[i] += g[i] * a[i] * scale;
        g[i] *= w[i];
        dot += g[i] * a[i];
      }
    }
    fetch(row + step);
    const float mean = lanes_sum(dot, lanes) * scale * scale / static_cast<float>(columns);
    if (!mine) continue;
#pragma unroll
    for (int i = 0; i < N; ++i) g[i] = (g[i] - a[i] * mean) * scale + p[i];
    store<T, N>(dx + row * columns + c, g);
  }
#pragma unroll
  for (int i = 0; i < N; ++i) shared[threadIdx.x * N + i] = sums[i];
  __syncthreads();
  if (threadIdx.x >= static_cast<unsigned>(lanes) || !inside) return;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    float all = 0;
    for (int other = lane; other < kThreads; other += lanes) all += shared[other * N + i];
    partial[blockIdx.x * columns + c + i] = all;
  }
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
    auto *added = static_cast<T*>(sum), *out = static_cast<T*>(y);
    if (is_narrow<N>(columns)) {
      const int lanes = lanes_of<N>(columns);
      const std::int64_t blocks = (rows * lanes + kThreads - 1) / kThreads;
      narrow_norm_kernel<T, N><<<static_cast<unsigned>(blocks), kThreads, 0, stream_of(stream)>>>(
          in, add, gain, epsilon, rows, columns, lanes, added, out, r);
    } else {
      norm_kernel<T, N><<<static_cast<unsigned>(rows), kThreads, 0, stream_of(stream)>>>(
          in, add, gain, epsilon, columns, added, out, r);
    }
  });
  check_launch("rms_norm");
}

std::int64_t rms_norm_blocks(std::int64_t rows) { return rows < kNormBlocks ? rows : kNormBlocks; }

void rms_norm_backward(Real real, const void* gradient, const void* passed, const void* x,
                       const void* weight, const float* r, std::int64_t rows, std::int64_t columns,
                       void* dx, float* partial, float* weight_gradient, void* stream) {
  if (rows == 0) return;
  const bool vector = columns % wide_of(real) == 0 && aligned(gradient) && aligned(passed) &&
                      aligned(x) && aligned(weight) && aligned(dx);
  const auto blocks = static_cast<unsigned>(rms_norm_blocks(rows));
  dispatch(real, vector, [&](auto zero, auto width) {
    using T = decltype(zero);
    constexpr int N = decltype(width)::value;
    const auto *g = static_cast<const T*>(gradient), *p = static_cast<const T*>(passed);
    const auto *in = static_cast<const T*>(x), *gain = static_cast<const T*>(weight);
    auto* out = static_cast<T*>(dx);
    if (is_narrow<N>(columns)) {
      narrow_norm_backward<T, N><<<blocks, kThreads, 0, stream_of(stream)>>>(
          g, p, in, gain, r, rows, columns, lanes_of<N>(columns), out, partial);
      return;
    }
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
    kernel<<<blocks, threads, static_cast<std::size_t>(shared), stream_of(stream)>>>(
        g, p, in, gain, r, rows, columns, out, partial);
  });
  add_columns_kernel<<<static_cast<unsigned>((columns + 31) / 32), dim3(32, 32), 0,
                       stream_of(stream)>>>(partial, blocks, columns, weight_gradient);
  check_launch("rms_norm_backward");
}

}  // namespace tessera::kernels
