// Copies and sums of byte ranges and casts for the wire, at the rate of memory: one pass over the
// bytes.
#include <cuda_fp16.h>

#include <algorithm>

#include "executor/kernels/device_math.cuh"
#include "executor/kernels/range_sums.h"

namespace tessera::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kAhead = 8;  // loads of a thread in flight

using Word = unsigned long long;

template <typename T, typename Add>
__device__ T over_block(T x, Add add) {
  __shared__ T shared[kThreads / 32];
  for (int step = 16; step > 0; step /= 2) x = add(x, __shfl_xor_sync(0xffffffffu, x, step));
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
  __syncthreads();
  T all = shared[0];
  for (int warp = 1; warp < kThreads / 32; ++warp) all = add(all, shared[warp]);
  return all;
}

/// A word at any address, the rest of the last one zero.
__device__ Word word_at(const unsigned char* data, unsigned bytes) {
  Word word = 0;
  for (unsigned i = 0; i < bytes && i < 8; ++i) word |= static_cast<Word>(data[i]) << (8 * i);
  return word;
}

__global__ void __launch_bounds__(kThreads) sums_of_ranges(const SumChunk* chunks, Word* sums) {
  const SumChunk chunk = chunks[blockIdx.x];
  const auto* data = static_cast<const unsigned char*>(chunk.data);
  const Word first = key_of_word(chunk.first_word);
  Word sum = 0;
  unsigned done = 0;  // bytes, a multiple of 16
  if (reinterpret_cast<Word>(data) % 16 == 0) {
    const unsigned pairs = chunk.bytes / 16;
    const auto* wide = reinterpret_cast<const ulonglong2*>(data);
    for (unsigned base = 0; base < pairs; base += kThreads * kAhead) {
      ulonglong2 loaded[kAhead];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const unsigned at = base + i * kThreads + threadIdx.x;
        loaded[i] = at < pairs ? __ldcs(wide + at) : ulonglong2{0, 0};
      }
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const unsigned at = base + i * kThreads + threadIdx.x;
        if (at >= pairs) continue;
        const Word key = first + static_cast<Word>(2 * at) * kSumStep;
        sum += mixed_word(loaded[i].x, key) + mixed_word(loaded[i].y, key + kSumStep);
      }
    }
    done = pairs * 16;
  }
  for (unsigned at = done + threadIdx.x * 8; at < chunk.bytes; at += kThreads * 8) {
    sum += mixed_word(word_at(data + at, chunk.bytes - at),
                      first + static_cast<Word>(at / 8) * kSumStep);
  }
  sum = over_block(sum, [](Word a, Word b) { return a + b; });
  if (threadIdx.x == 0) atomicAdd(sums + chunk.range, sum);
}

/// The piece in words of type T, which both ends are aligned for.
template <typename T>
__device__ void copy_words(const void* from, void* to, unsigned words) {
  const auto* in = static_cast<const T*>(from);
  auto* out = static_cast<T*>(to);
  for (unsigned base = 0; base < words; base += kThreads * kAhead) {
    T loaded[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const unsigned at = base + i * kThreads + threadIdx.x;
      if (at < words) loaded[i] = __ldcs(in + at);
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const unsigned at = base + i * kThreads + threadIdx.x;
      if (at < words) __stcs(out + at, loaded[i]);
    }
  }
}

__device__ void copy_chunk(const CopyChunk& chunk) {
  const auto bytes = static_cast<unsigned>(chunk.bytes);
  const Word ends = reinterpret_cast<Word>(chunk.from) | reinterpret_cast<Word>(chunk.to);
  unsigned done = 0;
  if (ends % 16 == 0) {
    copy_words<uint4>(chunk.from, chunk.to, bytes / 16);
    done = bytes / 16 * 16;
  } else if (ends % 2 == 0) {
    copy_words<unsigned short>(chunk.from, chunk.to, bytes / 2);
    done = bytes / 2 * 2;
  }
  copy_words<unsigned char>(static_cast<const unsigned char*>(chunk.from) + done,
                            static_cast<unsigned char*>(chunk.to) + done, bytes - done);
}

__global__ void __launch_bounds__(kThreads)
    copies_of_ranges(const CopyChunk* chunks, std::int64_t count) {
  for (std::int64_t i = blockIdx.x; i < count; i += gridDim.x) copy_chunk(chunks[i]);
}

__device__ float rounded(float x, __nv_bfloat16& to) {
  to = __float2bfloat16_rn(x);
  return __bfloat162float(to);
}
__device__ float rounded(float x, __half& to) {
  to = __float2half_rn(x);
  return __half2float(to);
}

template <typename Half, int N>
__global__ void __launch_bounds__(kThreads)
    casts(const float* from, Half* to, std::int64_t count, double* sums) {
  double error = 0, norm = 0;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads * N;
  for (std::int64_t at = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) * N;
       at < count; at += stride) {
    const Pack<float, N> x = *reinterpret_cast<const Pack<float, N>*>(from + at);
    Pack<Half, N> y;
    float lost = 0, whole = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float off = rounded(x.v[i], y.v[i]) - x.v[i];
      lost += off * off;
      whole += x.v[i] * x.v[i];
    }
    *reinterpret_cast<Pack<Half, N>*>(to + at) = y;
    error += lost;
    norm += whole;
  }
  if (sums == nullptr) return;
  const auto add = [](double a, double b) { return a + b; };
  error = over_block(error, add);
  norm = over_block(norm, add);
  if (threadIdx.x == 0) {
    atomicAdd(sums, error);
    atomicAdd(sums + 1, norm);
  }
}

template <typename Half>
void launch_casts(const float* from, void* to, std::int64_t count, double* sums, void* stream) {
  const bool wide =
      count % 4 == 0 && aligned(from) && reinterpret_cast<std::uintptr_t>(to) % 8 == 0;
  const std::int64_t per_block = kThreads * (wide ? 4 : 1) * 4;
  const auto blocks =
      static_cast<unsigned>(std::min<std::int64_t>((count + per_block - 1) / per_block, 132 * 16));
  auto* half = static_cast<Half*>(to);
  if (wide) {
    casts<Half, 4><<<blocks, kThreads, 0, stream_of(stream)>>>(from, half, count, sums);
  } else {
    casts<Half, 1><<<blocks, kThreads, 0, stream_of(stream)>>>(from, half, count, sums);
  }
}

}  // namespace

void add_range_sums(const SumChunk* chunks, std::int64_t count, std::uint64_t* sums, void* stream) {
  if (count == 0) return;
  sums_of_ranges<<<static_cast<unsigned>(count), kThreads, 0, stream_of(stream)>>>(
      chunks, reinterpret_cast<Word*>(sums));
  check_launch("add_range_sums");
}

void copy_ranges(const CopyChunk* chunks, std::int64_t count, std::int64_t blocks, void* stream) {
  if (count == 0) return;
  const auto grid = static_cast<unsigned>(blocks > 0 ? std::min(blocks, count) : count);
  copies_of_ranges<<<grid, kThreads, 0, stream_of(stream)>>>(chunks, count);
  check_launch("copy_ranges");
}

void cast_to_half(const float* from, void* to, HalfType type, std::int64_t count, double* sums,
                  void* stream) {
  if (count == 0) return;
  if (type == HalfType::bf16) {
    launch_casts<__nv_bfloat16>(from, to, count, sums, stream);
  } else {
    launch_casts<__half>(from, to, count, sums, stream);
  }
  check_launch("cast_to_half");
}

}  // namespace tessera::kernels
