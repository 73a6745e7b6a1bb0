// Generation: rotation into pages, draws.
#include "executor/kernels/rollout_kernels.h"

#include <climits>

#include "executor/kernels/device_math.cuh"
#include "executor/rl/draw_weight.h"

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

// A row of logits is cut into segments, one block each: their largest elements, then the sums of
// their weights, then the token in the segment where the running sum passes the target.
constexpr int kSegments = 16;
constexpr int kDrawThreads = 256;

struct SegmentScratch {
  float highest[kSegments];
  int place[kSegments];                             // of the first element that is as high
  int bad[kSegments];                               // holds NaN
  std::int64_t weight[kSegments], kept[kSegments];  // of all elements; of those that may be drawn
};

struct Segment {
  std::int64_t lo, hi;
};
__device__ Segment segment_of(std::int64_t columns, int index) {
  const std::int64_t length = (columns + kSegments - 1) / kSegments;
  const std::int64_t wide = (length + 3) / 4 * 4;
  const std::int64_t lo = min(index * wide, columns);
  return {lo, min(lo + wide, columns)};
}

__device__ std::int64_t block_sum_of(std::int64_t x) {
  __shared__ std::int64_t shared[kDrawThreads / kWarp];
  for (int step = kWarp / 2; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  __syncthreads();
  if (lane == 0) shared[warp] = x;
  __syncthreads();
  x = lane < kDrawThreads / kWarp ? shared[lane] : 0;
  for (int step = kWarp / 2; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}

/// Calls fn(column, value) for the thread's elements of a segment: 16 bytes at a time where rows
/// begin at multiples of them.
template <typename Fn>
__device__ void each_element(const float* row, std::int64_t columns, Segment segment, Fn fn) {
  if (columns % 4 == 0) {
    for (std::int64_t c = segment.lo + 4 * threadIdx.x; c < segment.hi; c += 4 * kDrawThreads) {
      const float4 x = __ldg(reinterpret_cast<const float4*>(row + c));
      fn(c, x.x), fn(c + 1, x.y), fn(c + 2, x.z), fn(c + 3, x.w);
    }
    return;
  }
  for (std::int64_t c = segment.lo + threadIdx.x; c < segment.hi; c += kDrawThreads) fn(c, row[c]);
}

__device__ bool beats(float a, int at_a, float b, int at_b) {
  return a > b || (a == b && at_a < at_b);
}

__global__ void highest_kernel(const float* logits, std::int64_t columns, const std::int64_t* rows,
                               SegmentScratch* scratch) {
  const float* row = logits + rows[blockIdx.y] * columns;
  const Segment segment = segment_of(columns, blockIdx.x);
  float best = -INFINITY;
  int place = INT_MAX, bad = 0;
  each_element(row, columns, segment, [&](std::int64_t c, float x) {
    bad |= x != x;
    if (beats(x, static_cast<int>(c), best, place)) best = x, place = static_cast<int>(c);
  });
  __shared__ float bests[kDrawThreads / kWarp];
  __shared__ int at[kDrawThreads / kWarp], bads[kDrawThreads / kWarp];
  const auto reduce = [&](int from) {
    for (int step = from; step > 0; step /= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, best, step);
      const int other_place = __shfl_xor_sync(0xffffffffu, place, step);
      bad |= __shfl_xor_sync(0xffffffffu, bad, step);
      if (beats(other, other_place, best, place)) best = other, place = other_place;
    }
  };
  reduce(kWarp / 2);
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  if (lane == 0) bests[warp] = best, at[warp] = place, bads[warp] = bad;
  __syncthreads();
  if (warp > 0) return;
  constexpr int kWarps = kDrawThreads / kWarp;
  best = lane < kWarps ? bests[lane] : -INFINITY;
  place = lane < kWarps ? at[lane] : INT_MAX;
  bad = lane < kWarps ? bads[lane] : 0;
  reduce(kWarp / 2);
  if (lane > 0) return;
  SegmentScratch& mine = scratch[blockIdx.y];
  mine.highest[blockIdx.x] = best;
  mine.place[blockIdx.x] = place;
  mine.bad[blockIdx.x] = bad;
}

struct Highest {
  float value;
  int place;
  bool good;
};
__device__ Highest highest_of(const SegmentScratch& scratch) {
  Highest top{-INFINITY, INT_MAX, true};
  for (int s = 0; s < kSegments; ++s) {
    top.good = top.good && scratch.bad[s] == 0;
    if (beats(scratch.highest[s], scratch.place[s], top.value, top.place)) {
      top.value = scratch.highest[s];
      top.place = scratch.place[s];
    }
  }
  top.good = top.good && isfinite(top.value);
  return top;
}

/// draw_weight where it may be drawn, else 0.
__device__ std::int64_t kept_weight(float x, float top, float inverse, std::int64_t least) {
  const std::int64_t weight = draw_weight(draw_exponent(x, top, inverse));
  return weight >= least ? weight : 0;
}

__global__ void weight_kernel(DrawOptions options, const float* logits, std::int64_t columns,
                              const std::int64_t* rows, SegmentScratch* scratch) {
  const float* row = logits + rows[blockIdx.y] * columns;
  const Segment segment = segment_of(columns, blockIdx.x);
  const float top = highest_of(scratch[blockIdx.y]).value;
  std::int64_t sum = 0, kept = 0;
  each_element(row, columns, segment, [&](std::int64_t, float x) {
    const std::int64_t weight = draw_weight(draw_exponent(x, top, options.inverse_temperature));
    sum += weight;
    kept += weight >= options.least_weight ? weight : 0;
  });
  sum = block_sum_of(sum);
  if (options.least_weight > 0) kept = block_sum_of(kept);
  if (threadIdx.x > 0) return;
  scratch[blockIdx.y].weight[blockIdx.x] = sum;
  scratch[blockIdx.y].kept[blockIdx.x] = options.least_weight > 0 ? kept : sum;
}

/// The first column of the segment whose running sum of kept weights passes `target`, a sum from
/// the segment's start. All threads of the block; the answer is in `found`.
__device__ void find_column(const DrawOptions& options, const float* row, Segment segment,
                            float top, std::int64_t target, int* found) {
  __shared__ std::int64_t sums[kDrawThreads];
  const std::int64_t length = segment.hi - segment.lo;
  const std::int64_t each = (length + kDrawThreads - 1) / kDrawThreads;
  const std::int64_t lo = min(segment.lo + threadIdx.x * each, segment.hi);
  const std::int64_t hi = min(lo + each, segment.hi);
  std::int64_t mine = 0;
  const auto kept_at = [&](std::int64_t c) {
    return kept_weight(row[c], top, options.inverse_temperature, options.least_weight);
  };
  for (std::int64_t c = lo; c < hi; ++c) mine += kept_at(c);
  sums[threadIdx.x] = mine;
  __syncthreads();
  std::int64_t before = 0;
  for (int t = 0; t < static_cast<int>(threadIdx.x); ++t) before += sums[t];
  if (target >= before && target < before + mine) {
    for (std::int64_t c = lo; c < hi; ++c) {
      before += kept_at(c);
      if (before > target) {
        *found = static_cast<int>(c);
        break;
      }
    }
  }
  __syncthreads();
}

/// Of a token whose logit is `gap` above the highest, where all weights of the row sum to `total`.
__device__ float log_prob_of(double gap, const DrawOptions& options, std::int64_t total) {
  return static_cast<float>(gap / options.temperature -
                            log(static_cast<double>(total) / 1099511627776.0));
}

__global__ void score_kernel(DrawOptions options, const float* logits, std::int64_t columns,
                             const std::int64_t* rows, const std::int64_t* tokens,
                             std::int64_t count, const SegmentScratch* scratch, float* log_probs) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const Highest top = highest_of(scratch[i]);
  std::int64_t total = 0;
  for (int s = 0; s < kSegments; ++s) total += scratch[i].weight[s];
  const double gap =
      top.good ? static_cast<double>(logits[rows[i] * columns + tokens[i]]) - top.value : 0;
  log_probs[i] = log_prob_of(gap, options, total);
}

__global__ void draw_kernel(DrawOptions options, const float* logits, std::int64_t columns,
                            const std::int64_t* rows, const double* uniforms,
                            const std::int64_t* slots, SegmentScratch* scratch,
                            DrawTargets targets) {
  const int draw = blockIdx.x;
  const float* row = logits + rows[draw] * columns;
  const SegmentScratch& mine = scratch[draw];
  const Highest top = highest_of(mine);
  std::int64_t total = 0, kept = 0;
  for (int s = 0; s < kSegments; ++s) total += mine.weight[s], kept += mine.kept[s];
  __shared__ int found;
  if (threadIdx.x == 0) found = top.place;
  __syncthreads();
  if (!options.greedy && top.good) {
    std::int64_t target = static_cast<std::int64_t>(uniforms[draw] * static_cast<double>(kept));
    target = min(target, kept - 1);
    int s = 0;
    for (; target >= mine.kept[s]; ++s) target -= mine.kept[s];
    find_column(options, row, segment_of(columns, s), top.value, target, &found);
  }
  if (threadIdx.x > 0) return;
  const int token = top.good ? found : -1;
  targets.tokens[draw] = token;
  targets.last_tokens[slots[draw]] = max(token, 0);
  const double gap = top.good ? static_cast<double>(row[token]) - top.value : 0;
  targets.log_probs[draw] = log_prob_of(gap, options, total);
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

std::int64_t draw_scratch_bytes(std::int64_t draws) {
  return draws * static_cast<std::int64_t>(sizeof(SegmentScratch));
}

void draw_tokens(const DrawOptions& options, const float* logits, std::int64_t columns,
                 const std::int64_t* rows, const double* uniforms, const std::int64_t* slots,
                 std::int64_t draws, const DrawTargets& targets, void* scratch, void* stream) {
  auto* segments = static_cast<SegmentScratch*>(scratch);
  const dim3 grid(kSegments, static_cast<unsigned>(draws));
  highest_kernel<<<grid, kDrawThreads, 0, stream_of(stream)>>>(logits, columns, rows, segments);
  weight_kernel<<<grid, kDrawThreads, 0, stream_of(stream)>>>(options, logits, columns, rows,
                                                              segments);
  draw_kernel<<<static_cast<unsigned>(draws), kDrawThreads, 0, stream_of(stream)>>>(
      options, logits, columns, rows, uniforms, slots, segments, targets);
  check_launch("draw_tokens");
}

void score_tokens(const DrawOptions& options, const float* logits, std::int64_t columns,
                  const std::int64_t* rows, const std::int64_t* tokens, std::int64_t count,
                  float* log_probs, void* scratch, void* stream) {
  if (count == 0) return;
  auto* segments = static_cast<SegmentScratch*>(scratch);
  const dim3 grid(kSegments, static_cast<unsigned>(count));
  highest_kernel<<<grid, kDrawThreads, 0, stream_of(stream)>>>(logits, columns, rows, segments);
  weight_kernel<<<grid, kDrawThreads, 0, stream_of(stream)>>>(options, logits, columns, rows,
                                                              segments);
  const auto blocks = static_cast<unsigned>((count + kDrawThreads - 1) / kDrawThreads);
  score_kernel<<<blocks, kDrawThreads, 0, stream_of(stream)>>>(options, logits, columns, rows,
                                                               tokens, count, segments, log_probs);
  check_launch("score_tokens");
}

}  // namespace tessera::kernels
