#include "executor/kernels/rollout_kernels.h"

#include "executor/kernels/device_math.cuh"

namespace tessera::kernels {
namespace {

constexpr int kWarp = 32;
constexpr int kMostPairs = 4;  // of a lane: head_dim up to 256
constexpr int kHeadsPerBlock = 4;

__device__ float warp_sum(float x) {
  for (int step = kWarp / 2; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}

/// One warp per token and head: queries, then keys, then values.
template <typename T>
__global__ void rotate_and_store_kernel(HeadRows rows, const T* cos, const T* sin,
                                        const std::int64_t* positions, const std::int64_t* places,
                                        std::int64_t page_tokens, T* q_out, T* keys, T* values) {
  const std::int64_t token = blockIdx.x;
  const std::int64_t head = blockIdx.y * kHeadsPerBlock + threadIdx.y;
  const std::int64_t dim = 2 * rows.half;
  if (head >= rows.heads + 2 * rows.kv_heads) return;
  const bool query = head < rows.heads;
  const bool value = head >= rows.heads + rows.kv_heads;
  const std::int64_t kv = query ? 0 : head - rows.heads - (value ? rows.kv_heads : 0);
  const T* in = static_cast<const T*>(query   ? rows.q
                                      : value ? rows.v
                                              : rows.k) +
                token * rows.stride + (query ? head : kv) * dim;
  T* out = q_out + (token * rows.heads + head) * dim;
  if (!query) {
    const std::int64_t page = places[token] / page_tokens, row = places[token] % page_tokens;
    out = (value ? values : keys) + ((page * rows.kv_heads + kv) * page_tokens + row) * dim;
  }
  float a[kMostPairs], b[kMostPairs];
  float squares = 0;
#pragma unroll
  for (int i = 0; i < kMostPairs; ++i) {
    const std::int64_t c = threadIdx.x + i * kWarp;
    if (c >= rows.half) continue;
    a[i] = static_cast<float>(in[c]);
    b[i] = static_cast<float>(in[c + rows.half]);
    squares += a[i] * a[i] + b[i] * b[i];
  }
  const T* norm = static_cast<const T*>(query ? rows.q_norm : value ? nullptr : rows.k_norm);
  const float scale =
      norm != nullptr ? rsqrtf(warp_sum(squares) / static_cast<float>(dim) + rows.epsilon) : 1;
  const std::int64_t angle = positions[token] * rows.half;
#pragma unroll
  for (int i = 0; i < kMostPairs; ++i) {
    const std::int64_t c = threadIdx.x + i * kWarp;
    if (c >= rows.half) continue;
    if (norm != nullptr) {
      a[i] = static_cast<float>(static_cast<T>(a[i] * scale * static_cast<float>(norm[c])));
      b[i] = static_cast<float>(
          static_cast<T>(b[i] * scale * static_cast<float>(norm[c + rows.half])));
    }
    const float co = value ? 1.0F : static_cast<float>(cos[angle + c]);
    const float si = value ? 0.0F : static_cast<float>(sin[angle + c]);
    out[c] = static_cast<T>(a[i] * co - b[i] * si);
    out[c + rows.half] = static_cast<T>(b[i] * co + a[i] * si);
  }
}

}  // namespace

void rotate_and_store(Real real, const HeadRows& rows, const void* cos, const void* sin,
                      const std::int64_t* positions, const std::int64_t* places,
                      std::int64_t tokens, std::int64_t page_tokens, void* q_out, void* keys,
                      void* values, void* stream) {
  if (rows.half > kMostPairs * kWarp) throw std::runtime_error("head_dim is above 256");
  const std::int64_t heads = rows.heads + 2 * rows.kv_heads;
  const dim3 grid(static_cast<unsigned>(tokens),
                  static_cast<unsigned>((heads + kHeadsPerBlock - 1) / kHeadsPerBlock));
  const dim3 block(kWarp, kHeadsPerBlock);
  dispatch(real, false, [&](auto type, auto) {
    using T = decltype(type);
    rotate_and_store_kernel<T><<<grid, block, 0, stream_of(stream)>>>(
        rows, static_cast<const T*>(cos), static_cast<const T*>(sin), positions, places,
        page_tokens, static_cast<T*>(q_out), static_cast<T*>(keys), static_cast<T*>(values));
  });
  check_launch("rotate_and_store");
}

}  // namespace tessera::kernels
