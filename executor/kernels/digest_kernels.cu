// Digests of weights in one pass over their bytes.
#include "executor/kernels/device_math.cuh"
#include "executor/kernels/weight_digest.h"

namespace tessera::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kAhead = 4;  // loads of a thread in flight

using Word = unsigned long long;

/// 16 bytes of one row, or one element: N elements whose keys begin at `key`.
template <typename Element, int N>
__device__ Word digest_of(const Pack<Element, N>& pack, DigestRead read, Word key, Word step) {
  Word sum = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    sum += digest_mix(key + static_cast<Word>(i) * step + digested_bits(read, pack.v[i]));
  }
  return sum;
}

/// The chunk in packs of N elements, which its rows consist of.
template <typename Element, int N>
__device__ Word digest_of_chunk(const DigestPiece& piece, DigestRead read) {
  const auto columns = static_cast<unsigned>(piece.columns) / N;
  const unsigned packs = static_cast<unsigned>(piece.rows) * columns;
  const auto* data = static_cast<const Element*>(piece.data);
  Word sum = 0;
  for (unsigned base = 0; base < packs; base += kThreads * kAhead) {
    Pack<Element, N> loaded[kAhead];
    Word keys[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const unsigned at = base + i * kThreads + threadIdx.x;
      if (at >= packs) continue;
      const unsigned row = at / columns, column = (at - row * columns) * N;
      loaded[i] = *reinterpret_cast<const Pack<Element, N>*>(data + row * piece.pitch + column);
      keys[i] = piece.key + row * piece.row_step + column * piece.column_step;
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      if (base + i * kThreads + threadIdx.x >= packs) continue;
      sum += digest_of(loaded[i], read, keys[i], piece.column_step);
    }
  }
  return sum;
}

template <typename Element>
__global__ void __launch_bounds__(kThreads)
    digests(const DigestChunk* chunks, DigestRead read, Word* sums) {
  constexpr int kWide = 16 / sizeof(Element);
  const DigestChunk chunk = chunks[blockIdx.x];
  const DigestPiece& piece = chunk.piece;
  const bool wide = reinterpret_cast<Word>(piece.data) % 16 == 0 && piece.columns % kWide == 0 &&
                    (piece.rows == 1 || piece.pitch % kWide == 0);
  Word sum = wide ? digest_of_chunk<Element, kWide>(piece, read)
                  : digest_of_chunk<Element, 1>(piece, read);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  __shared__ Word shared[kThreads / 32];
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int warp = 1; warp < kThreads / 32; ++warp) sum += shared[warp];
  atomicAdd(sums + chunk.sum, sum);
}

}  // namespace

void add_digests(const DigestChunk* chunks, std::int64_t count, DigestRead read,
                 std::uint64_t* sums, void* stream) {
  if (count == 0) return;
  const auto blocks = static_cast<unsigned>(count);
  auto* words = reinterpret_cast<Word*>(sums);
  if (bytes_of(read) == 2) {
    digests<unsigned short><<<blocks, kThreads, 0, stream_of(stream)>>>(chunks, read, words);
  } else {
    digests<unsigned int><<<blocks, kThreads, 0, stream_of(stream)>>>(chunks, read, words);
  }
  check_launch("add_digests");
}

}  // namespace tessera::kernels
