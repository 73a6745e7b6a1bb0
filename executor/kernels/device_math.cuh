// Device functions of the kernels: 16-byte loads and stores of either type as fp32, reductions of a
// block, launch checks.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "executor/kernels/kernels.h"

namespace tessera::kernels {

template <typename T, int N>
struct alignas(sizeof(T) * N > 16 ? 16 : sizeof(T) * N) Pack {
  T v[N];
};

template <typename T, int N>
__device__ void load(const T* from, float (&to)[N]) {
  const Pack<T, N> pack = *reinterpret_cast<const Pack<T, N>*>(from);
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = static_cast<float>(pack.v[i]);
}

template <typename T, int N>
__device__ void store(T* to, const float (&from)[N]) {
  Pack<T, N> pack;
#pragma unroll
  for (int i = 0; i < N; ++i) pack.v[i] = static_cast<T>(from[i]);
  *reinterpret_cast<Pack<T, N>*>(to) = pack;
}

/// The sum over a block whose size is a multiple of 32, on every thread.
__device__ inline float block_sum(float x) {
  __shared__ float shared[32];
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  __syncthreads();
  if (lane == 0) shared[warp] = x;
  __syncthreads();
  x = lane < warps ? shared[lane] : 0.0F;
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}

inline cudaStream_t stream_of(void* stream) { return static_cast<cudaStream_t>(stream); }

inline void check_launch(const char* what) {
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) {
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
  }
}

/// Elements of a 16-byte access.
template <typename T>
constexpr int kWide = 16 / sizeof(T);

inline bool aligned(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; }

/// Calls fn with a value of the type and its vector width (wide where `vector`, else 1).
template <int N>
using Width = std::integral_constant<int, N>;
template <typename Fn>
void dispatch(Real real, bool vector, Fn fn) {
  if (real == Real::bf16) {
    vector ? fn(__nv_bfloat16{}, Width<8>{}) : fn(__nv_bfloat16{}, Width<1>{});
  } else {
    vector ? fn(float{}, Width<4>{}) : fn(float{}, Width<1>{});
  }
}
inline int wide_of(Real real) { return real == Real::bf16 ? 8 : 4; }

}  // namespace tessera::kernels
