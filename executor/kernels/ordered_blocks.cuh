// The order of sums of ordered_attention, which its kernels share: what one warp does with a tile
// of 16 rows and a block of 128 keys, and how partial results are folded.
//
// Every product that is added to something is written as the operation that it is: no compiler may
// choose between a fused and a plain one here, since the kernels have to agree bit for bit.
#pragma once

#include "executor/kernels/device_math.cuh"
#include "executor/kernels/ordered_attention.h"

namespace tessera::kernels::ordered {

constexpr int kLanes = 32;
constexpr int kTileRows = 16;                   // of a product of the matrix units
constexpr int kStepKeys = 16;                   // of such a product, where values are added up
constexpr int kSteps = 8;                       // of a block
constexpr int kBlockKeys = kSteps * kStepKeys;  // whose keys have one maximum
constexpr int kSplitBlocks = 4;                 // which are folded before they join the rest
constexpr int kSplitKeys = kSplitBlocks * kBlockKeys;

/// d += a b, one 16 x 8 x 16 product of the matrix units.
__device__ inline void multiply_add(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                    std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ inline std::uint32_t packed(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

__device__ inline uint4 load16(const __nv_bfloat16* from) {
  return __ldg(reinterpret_cast<const uint4*>(from));
}

__device__ inline float power_of_2(float x) {
  float y = 0;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
  return y;
}

/// One of the two rows of a tile that a thread has scores of.
struct TileRow {
  std::int64_t place;  // of its first element in q and out
  int position;
};

/// A softmax over some keys: the highest score, in powers of two, and the sum of the weights.
struct RowState {
  float highest = -INFINITY, sum = 0;
};

struct Shares {
  float before = 0, part = 0;
};

/// Joins `part`, of later keys; both sides' values are to be multiplied by their shares. Keys that
/// the row does not see change nothing.
__device__ inline Shares fold(RowState& state, RowState part) {
  const float highest = fmaxf(state.highest, part.highest);
  const float base = highest == -INFINITY ? 0.0F : highest;
  const Shares shares{power_of_2(__fsub_rn(state.highest, base)),
                      power_of_2(__fsub_rn(part.highest, base))};
  state.sum = __fmaf_rn(state.sum, shares.before, __fmul_rn(part.sum, shares.part));
  state.highest = highest;
  return shares;
}

__device__ inline float folded(float before, float part, Shares shares) {
  return __fmaf_rn(before, shares.before, __fmul_rn(part, shares.part));
}

/// Queries of a tile as operands: which dims a register holds is the same for keys, so that loads
/// of both are 16 bytes wide.
template <int DIM>
__device__ void load_queries(const void* q, const TileRow (&rows)[2], int column,
                             std::uint32_t (&to)[DIM / 16][4]) {
#pragma unroll
  for (int chunk = 0; chunk < DIM / 32; ++chunk) {
    const auto* from = static_cast<const __nv_bfloat16*>(q) + chunk * 32 + 8 * column;
    const uint4 a = load16(from + rows[0].place), b = load16(from + rows[1].place);
    to[2 * chunk][0] = a.x, to[2 * chunk][1] = b.x, to[2 * chunk][2] = a.y, to[2 * chunk][3] = b.y;
    to[2 * chunk + 1][0] = a.z, to[2 * chunk + 1][1] = b.z;
    to[2 * chunk + 1][2] = a.w, to[2 * chunk + 1][3] = b.w;
  }
}

/// Products with 8 keys.
template <int DIM>
__device__ void multiply_keys(const std::uint32_t (&q)[DIM / 16][4], const uint4 (&k)[DIM / 32],
                              float (&scores)[4]) {
#pragma unroll
  for (int chunk = 0; chunk < DIM / 32; ++chunk) {
    multiply_add(scores, q[2 * chunk], k[chunk].x, k[chunk].y);
    multiply_add(scores, q[2 * chunk + 1], k[chunk].z, k[chunk].w);
  }
}

/// Adds the values of 4 keys a thread to 8 tiles of 8 dims.
__device__ inline void multiply_values(const std::uint32_t (&weights)[4], const uint4 (&v)[4],
                                       float (*out)[4]) {
  const std::uint32_t words[4][4] = {{v[0].x, v[0].y, v[0].z, v[0].w},
                                     {v[1].x, v[1].y, v[1].z, v[1].w},
                                     {v[2].x, v[2].y, v[2].z, v[2].w},
                                     {v[3].x, v[3].y, v[3].z, v[3].w}};
#pragma unroll
  for (int t = 0; t < 8; ++t) {
    const unsigned halves = t % 2 == 0 ? 0x5410U : 0x7632U;
    multiply_add(out[t], weights, __byte_perm(words[0][t / 2], words[1][t / 2], halves),
                 __byte_perm(words[2][t / 2], words[3][t / 2], halves));
  }
}

__device__ inline void copy16(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(from));
}
__device__ inline void close_copies() { asm volatile("cp.async.commit_group;\n"); }
/// Returns when at most the last LATER groups of this thread's copies are under way.
template <int LATER>
__device__ void await_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(LATER) : "memory");
}

/// Keys or values in shared memory. Units of 16 bytes lie in their row such that no two threads
/// that load together meet in a bank: `key_at` and `value_at` say where.
template <int COUNT, int DIM>
struct Rows {
  uint4 data[COUNT][DIM / 8];

  __device__ static int key_at(int row, int unit) { return unit ^ ((row & 1) << 2); }
  __device__ static int value_at(int row, int unit) {
    return unit ^ (DIM == 128 ? (row >> 1 & 1) | (row & 4) : row & 6);
  }
};

/// Begins to copy rows whose slots are given, by THREADS threads, so many of them a row.
template <int THREADS, int A_ROW, int COUNT, int DIM>
__device__ void copy_rows(const void* memory, bool keys, const unsigned* slots, int thread,
                          Rows<COUNT, DIM>& to) {
  constexpr int kUnits = DIM / 8, kApart = THREADS / A_ROW;
#pragma unroll
  for (int i = 0; i < COUNT / kApart; ++i) {
    const int row = thread / A_ROW + i * kApart;
    const auto* from =
        static_cast<const uint4*>(memory) + static_cast<std::size_t>(slots[row]) * kUnits;
#pragma unroll
    for (int unit = thread % A_ROW; unit < kUnits; unit += A_ROW) {
      copy16(&to.data[row][keys ? to.key_at(row, unit) : to.value_at(row, unit)], from + unit);
    }
  }
}

/// Scores of the 16 keys from row `first`.
template <int DIM, int COUNT>
__device__ void see_keys(const Rows<COUNT, DIM>& keys, int first, int group, int column,
                         const std::uint32_t (&queries)[DIM / 16][4], float (&scores)[2][4]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first + 8 * half + group;
    uint4 k[DIM / 32];
#pragma unroll
    for (int chunk = 0; chunk < DIM / 32; ++chunk) {
      k[chunk] = keys.data[row][keys.key_at(row, 4 * chunk + column)];
    }
    multiply_keys<DIM>(queries, k, scores[half]);
  }
}

/// Adds the values of the 16 keys from row `first` to the tiles of part `part`, 8 of them.
template <int DIM, int COUNT>
__device__ void see_values(const Rows<COUNT, DIM>& values, int first, int group, int column,
                           int part, const std::uint32_t (&weights)[4], float (*out)[4]) {
  uint4 v[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = first + 2 * column + i % 2 + 8 * (i / 2);
    v[i] = values.data[row][values.value_at(row, group * (DIM / 64) + part)];
  }
  multiply_values(weights, v, out);
}

/// The weights of a block from its scores, by step and half, as operands of the product with
/// values. `first` is the block's first key. Masked keys weigh exactly nothing.
template <int DIM>
__device__ void weigh(float (&scores)[kSteps][2][4], const TileRow (&rows)[2], int first,
                      int window, int column, std::uint32_t (&weights)[kSteps][4],
                      RowState (&state)[2]) {
  const float scale = rsqrtf(static_cast<float>(DIM)) * 1.44269504F;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int last = rows[r].position;
    const int lowest = window > 0 ? last - window + 1 : 0;
    float highest = -INFINITY;
#pragma unroll
    for (int i = 0; i < 4 * kSteps; ++i) {
      const int key = first + 8 * (i / 2) + 2 * column + i % 2;
      float& score = scores[i / 4][i / 2 % 2][2 * r + i % 2];
      if (key > last || key < lowest) score = -INFINITY;
      highest = fmaxf(highest, score);
    }
    highest = fmaxf(highest, __shfl_xor_sync(0xffffffffU, highest, 1));
    highest = fmaxf(highest, __shfl_xor_sync(0xffffffffU, highest, 2));
    state[r].highest = __fmul_rn(highest, scale);
    const float base = highest == -INFINITY ? 0.0F : -state[r].highest;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 4 * kSteps; ++i) {
      float& score = scores[i / 4][i / 2 % 2][2 * r + i % 2];
      score = power_of_2(__fmaf_rn(score, scale, base));
      sum = __fadd_rn(sum, score);
    }
    sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffffU, sum, 1));
    state[r].sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffffU, sum, 2));
  }
#pragma unroll
  for (int j = 0; j < kSteps; ++j) {
    const auto& s = scores[j];
    weights[j][0] = packed(s[0][0], s[0][1]), weights[j][1] = packed(s[0][2], s[0][3]);
    weights[j][2] = packed(s[1][0], s[1][1]), weights[j][3] = packed(s[1][2], s[1][3]);
  }
}

/// Row `r` of the tile at `first` (rows are numbered by query, then head of the group).
struct TileRows {
  std::int64_t start, heads, kv_head;  // first query token; heads of a token
  int share, first, rows, ahead;       // query heads a KV head; rows from `first`; keys - queries
  int dim;

  __device__ TileRow at(int r) const {
    const int v = first + min(r, rows - 1);
    return {((start + v / share) * heads + kv_head * share + v % share) * dim, ahead + v / share};
  }
};

__device__ inline TileRows rows_of(const OrderedShape& shape, const OrderedInput& input,
                                   int sequence, int kv_head, int first, int most) {
  const int share = static_cast<int>(shape.heads / shape.kv_heads);
  const int queries = input.query_lengths[sequence];
  return {.start = input.query_starts != nullptr ? input.query_starts[sequence] : sequence,
          .heads = shape.heads,
          .kv_head = kv_head,
          .share = share,
          .first = first,
          .rows = min(most, queries * share - first),
          .ahead = input.key_lengths[sequence] - queries,
          .dim = static_cast<int>(shape.head_dim)};
}

/// Where a key lies in keys and values, counted in heads of a token.
struct Slots {
  const std::int32_t* pages;
  unsigned page_tokens, kv_heads, kv_head, last;

  __device__ Slots(const OrderedShape& shape, const OrderedInput& input, int sequence, int head)
      : pages(input.page_table + std::int64_t{sequence} * shape.row_pages),
        page_tokens(static_cast<unsigned>(shape.page_tokens)),
        kv_heads(static_cast<unsigned>(shape.kv_heads)),
        kv_head(static_cast<unsigned>(head)),
        last(static_cast<unsigned>(input.key_lengths[sequence] - 1)) {}

  /// Keys behind the last are the last, so that what is multiplied by zero is a number.
  __device__ unsigned operator()(int key) const {
    const unsigned at = min(static_cast<unsigned>(key), last);
    const auto page = static_cast<unsigned>(pages[at / page_tokens]);
    return (page * kv_heads + kv_head) * page_tokens + at % page_tokens;
  }
};

}  // namespace tessera::kernels::ordered
