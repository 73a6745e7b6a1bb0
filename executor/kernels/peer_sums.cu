#include "executor/kernels/peer_sums.h"

#include "executor/kernels/device_math.cuh"

namespace tessera::kernels {
namespace {

constexpr int kThreads = 512;
constexpr int kLooksBetween = 1 << 12;  // at `given_up`, which is host memory

__device__ void announce(std::uint32_t* to, std::uint32_t call) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(to), "r"(call) : "memory");
}
__device__ std::uint32_t announced(const std::uint32_t* from) {
  std::uint32_t call = 0;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(call) : "l"(from) : "memory");
  return call;
}

/// Thread i meets the block of this number on rank i. What a block wrote before its threads came
/// here can be read by the peers' blocks behind it.
__device__ void meet_peers(const PeerSumMemory& memory, std::uint32_t call) {
  const int peer = static_cast<int>(threadIdx.x);
  if (peer >= memory.ranks || peer == memory.rank) return;
  announce(memory.arrivals[peer] + memory.rank * kPeerSumBlocks + blockIdx.x, call);
  const std::uint32_t* arrival = memory.arrivals[memory.rank] + peer * kPeerSumBlocks + blockIdx.x;
  for (int looks = 1; announced(arrival) != call; ++looks) {
    if (looks % kLooksBetween == 0 && *memory.given_up != 0) return;
  }
}

/// A region is written again two calls later. By then its readers are done: this block has met
/// theirs of the call between, which began when the one before had ended.
template <typename T, int N>
__global__ void __launch_bounds__(kThreads)
    sum_over_peers_kernel(PeerSumMemory memory, T* x, std::int64_t count) {
  const std::uint32_t call = memory.calls[blockIdx.x] + 1;
  const std::int64_t region = (call % 2) * memory.region_bytes;
  const auto part = [&](int rank) {
    return reinterpret_cast<T*>(static_cast<char*>(memory.regions[rank]) + region);
  };
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) * N;
  constexpr std::int64_t kStride = static_cast<std::int64_t>(kPeerSumBlocks) * kThreads * N;
  for (std::int64_t at = first; at < count; at += kStride) {
    *reinterpret_cast<Pack<T, N>*>(part(memory.rank) + at) =
        *reinterpret_cast<const Pack<T, N>*>(x + at);
  }
  __syncthreads();
  meet_peers(memory, call);
  __syncthreads();
  if (threadIdx.x == 0) memory.calls[blockIdx.x] = call;
#pragma unroll 4
  for (std::int64_t at = first; at < count; at += kStride) {
    float sum[N] = {};
    for (int rank = 0; rank < memory.ranks; ++rank) {
      float parts[N];
      load<T, N>(part(rank) + at, parts);
#pragma unroll
      for (int i = 0; i < N; ++i) sum[i] += parts[i];
    }
    store<T, N>(x + at, sum);
  }
}

}  // namespace

void sum_over_peers(Real real, const PeerSumMemory& memory, void* x, std::int64_t count,
                    void* stream) {
  const bool wide = count % wide_of(real) == 0 && aligned(x);
  dispatch(real, wide, [&](auto type, auto width) {
    using T = decltype(type);
    sum_over_peers_kernel<T, width.value>
        <<<kPeerSumBlocks, kThreads, 0, stream_of(stream)>>>(memory, static_cast<T*>(x), count);
  });
  check_launch("sum_over_peers");
}

}  // namespace tessera::kernels
