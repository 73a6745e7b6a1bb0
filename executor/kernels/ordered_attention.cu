#include "executor/kernels/ordered_attention.h"

#include "executor/kernels/device_math.cuh"

namespace tessera::kernels {
namespace {

constexpr int kWarps = 8, kLanes = 32;
constexpr int kBlock = 16;  // keys of a block, and rows of a tile

/// d += a b, one 16 x 8 x 16 product of the matrix units.
__device__ void multiply_add(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                             std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ std::uint32_t packed(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

__device__ uint4 load16(const __nv_bfloat16* from) {
  return __ldg(reinterpret_cast<const uint4*>(from));
}

/// One of the two rows of a tile that a thread has scores of.
struct TileRow {
  std::int64_t place;  // of its first element in q and out
  int position;
  bool real;
};

/// The running softmax of such a row in one warp.
struct RowState {
  float highest = -INFINITY, sum = 0;
};

/// Weights of a row's scores, which become them; returns what earlier sums are multiplied by.
__device__ float weigh(RowState& state, float (&scores)[4]) {
  float highest = fmaxf(fmaxf(scores[0], scores[1]), fmaxf(scores[2], scores[3]));
  highest = fmaxf(highest, __shfl_xor_sync(0xffffffffU, highest, 1));
  highest = fmaxf(highest, __shfl_xor_sync(0xffffffffU, highest, 2));
  highest = fmaxf(highest, state.highest);
  const float base = highest == -INFINITY ? 0.0F : highest;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    scores[i] = exp2f(scores[i] - base);
    sum += scores[i];
  }
  sum += __shfl_xor_sync(0xffffffffU, sum, 1);
  sum += __shfl_xor_sync(0xffffffffU, sum, 2);
  const float kept = exp2f(state.highest - base);
  state.sum = state.sum * kept + sum;
  state.highest = highest;
  return kept;
}

template <int DIM>
struct Merged {
  float out[kWarps][kBlock][DIM];
  float highest[kWarps][kBlock], sum[kWarps][kBlock];
};

/// Adds the warps' partial results up, in their order, and writes the tile's rows.
template <int DIM>
__device__ void merge(const Merged<DIM>& parts, const std::int64_t* places, int rows,
                      __nv_bfloat16* out) {
  for (int i = threadIdx.x; i < rows * DIM; i += kWarps * kLanes) {
    const int r = i / DIM, d = i % DIM;
    float highest = -INFINITY;
    for (int w = 0; w < kWarps; ++w) highest = fmaxf(highest, parts.highest[w][r]);
    float value = 0, sum = 0;
    for (int w = 0; w < kWarps; ++w) {
      const float share = exp2f(parts.highest[w][r] - highest);
      value += parts.out[w][r][d] * share;
      sum += parts.sum[w][r] * share;
    }
    out[places[r] + d] = __float2bfloat16(value / sum);
  }
}

/// A block has 16 rows (query token, head of the group) of one sequence and KV head; each warp the
/// blocks of keys that are its own. Which dims and keys a register holds is the same for both
/// operands of a product, and so that loads are 16 bytes wide.
template <int DIM>
__global__ void __launch_bounds__(kWarps* kLanes)
    ordered_attention_kernel(OrderedShape shape, OrderedInput input) {
  constexpr int kChunks = DIM / 32, kTiles = DIM / 8, kWords = DIM / 16;
  extern __shared__ float4 shared[];
  Merged<DIM>& parts = *reinterpret_cast<Merged<DIM>*>(shared);
  __shared__ std::int64_t places[kBlock];
  const int sequence = blockIdx.z, kv_head = blockIdx.y, first = blockIdx.x * kBlock;
  const int share = static_cast<int>(shape.heads / shape.kv_heads);
  const int queries = input.query_lengths[sequence], keys = input.key_lengths[sequence];
  const int rows = min(kBlock, queries * share - first);
  if (rows <= 0) return;
  const int start = input.query_starts != nullptr ? input.query_starts[sequence] : sequence;
  const int warp = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
  const int group = lane / 4, column = lane % 4;
  const auto row_of = [&](int r) {
    const int v = first + min(r, rows - 1);
    const std::int64_t head = std::int64_t{kv_head} * share + v % share;
    return TileRow{((start + v / share) * shape.heads + head) * DIM, keys - queries + v / share,
                   r < rows};
  };
  if (threadIdx.x < kBlock) places[threadIdx.x] = row_of(threadIdx.x).place;
  const TileRow own[2] = {row_of(group), row_of(group + 8)};
  const int last = row_of(rows - 1).position, lowest = row_of(0).position;
  const int window = static_cast<int>(shape.window);

  std::uint32_t q[2 * kChunks][4];
#pragma unroll
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    const auto* from = static_cast<const __nv_bfloat16*>(input.q) + chunk * 32 + 8 * column;
    const uint4 a = load16(from + own[0].place), b = load16(from + own[1].place);
    q[2 * chunk][0] = a.x, q[2 * chunk][1] = b.x, q[2 * chunk][2] = a.y, q[2 * chunk][3] = b.y;
    q[2 * chunk + 1][0] = a.z, q[2 * chunk + 1][1] = b.z;
    q[2 * chunk + 1][2] = a.w, q[2 * chunk + 1][3] = b.w;
  }
  const auto element = [&](int key) {
    const unsigned at = static_cast<unsigned>(min(key, keys - 1));
    const unsigned per_page = static_cast<unsigned>(shape.page_tokens);
    const std::int64_t page =
        input.page_table[std::int64_t{sequence} * shape.row_pages + at / per_page];
    return ((page * shape.kv_heads + kv_head) * shape.page_tokens + at % per_page) * DIM;
  };

  const float scale = rsqrtf(static_cast<float>(DIM)) * 1.44269504F;
  RowState state[2];
  float out[kTiles][4] = {};
  int block = window > 0 ? max(0, lowest - window + 1) / kBlock : 0;
  block += (warp - block % kWarps + kWarps) % kWarps;
  for (; block * kBlock <= last; block += kWarps) {
    const int key = block * kBlock;
    // Values are on their way while keys are compared.
    std::uint32_t v[4][kWords];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const auto* from = static_cast<const __nv_bfloat16*>(input.values) +
                         element(key + 2 * column + i % 2 + 8 * (i / 2)) + group * kTiles;
#pragma unroll
      for (int word = 0; word < kWords; word += 4) {
        const uint4 wide = load16(from + 2 * word);
        v[i][word] = wide.x, v[i][word + 1] = wide.y;
        v[i][word + 2] = wide.z, v[i][word + 3] = wide.w;
      }
    }
    float scores[2][4] = {};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const auto* from = static_cast<const __nv_bfloat16*>(input.keys) +
                         element(key + 8 * half + group) + 8 * column;
      uint4 k[kChunks];
#pragma unroll
      for (int chunk = 0; chunk < kChunks; ++chunk) k[chunk] = load16(from + chunk * 32);
#pragma unroll
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        multiply_add(scores[half], q[2 * chunk], k[chunk].x, k[chunk].y);
        multiply_add(scores[half], q[2 * chunk + 1], k[chunk].z, k[chunk].w);
      }
    }
    float weights[2][4];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int at = key + 8 * (i / 2) + 2 * column + i % 2;
        const bool seen = at <= own[r].position && (window == 0 || at > own[r].position - window);
        weights[r][i] = seen ? scores[i / 2][2 * r + i % 2] * scale : -INFINITY;
      }
      const float kept = weigh(state[r], weights[r]);
#pragma unroll
      for (int t = 0; t < kTiles; ++t) out[t][2 * r] *= kept, out[t][2 * r + 1] *= kept;
    }
    const std::uint32_t p[4] = {
        packed(weights[0][0], weights[0][1]), packed(weights[1][0], weights[1][1]),
        packed(weights[0][2], weights[0][3]), packed(weights[1][2], weights[1][3])};
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      const unsigned halves = t % 2 == 0 ? 0x5410U : 0x7632U;
      multiply_add(out[t], p, __byte_perm(v[0][t / 2], v[1][t / 2], halves),
                   __byte_perm(v[2][t / 2], v[3][t / 2], halves));
    }
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = group + 8 * r;
    if (column == 0) {
      parts.highest[warp][row] = state[r].highest;
      parts.sum[warp][row] = state[r].sum;
    }
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      parts.out[warp][row][2 * column * kTiles + t] = out[t][2 * r];
      parts.out[warp][row][(2 * column + 1) * kTiles + t] = out[t][2 * r + 1];
    }
  }
  __syncthreads();
  merge<DIM>(parts, places, rows, static_cast<__nv_bfloat16*>(input.out));
}

template <int DIM>
void launch(dim3 grid, const OrderedShape& shape, const OrderedInput& input, cudaStream_t stream) {
  constexpr int kShared = sizeof(Merged<DIM>);
  cudaFuncSetAttribute(ordered_attention_kernel<DIM>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       kShared);
  ordered_attention_kernel<DIM><<<grid, kWarps * kLanes, kShared, stream>>>(shape, input);
}

}  // namespace

void ordered_attention(const OrderedShape& shape, const OrderedInput& input, void* stream) {
  if (shape.rows == 0) return;
  const std::int64_t rows = shape.longest_queries * (shape.heads / shape.kv_heads);
  const dim3 grid(static_cast<unsigned>((rows + kBlock - 1) / kBlock),
                  static_cast<unsigned>(shape.kv_heads), static_cast<unsigned>(shape.rows));
  if (shape.head_dim == 128) {
    launch<128>(grid, shape, input, stream_of(stream));
  } else if (shape.head_dim == 64) {
    launch<64>(grid, shape, input, stream_of(stream));
  } else {
    throw std::runtime_error("attention in the fixed order takes heads of 64 or 128 elements");
  }
  check_launch("ordered_attention");
}

}  // namespace tessera::kernels
