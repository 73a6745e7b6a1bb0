// What a block of threads does for draws from rows of logits: largest elements, sums of weights,
// the token where the running sum passes the target (draw_kernels.cu).
#pragma once

#include <cstdint>

#include "executor/kernels/draw_kernels.h"
#include "executor/rl/draw_weight.h"

namespace tessera::kernels {

constexpr int kWarp = 32;
/// Of a block. Few threads wait for one another quickly; 256 were quicker than 128, 384 and 512 on
/// an H200.
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
/// A row of logits is cut into so many segments, one block each: their largest elements, then the
/// sums of their weights, then the token where the running sum passes the target. It is the largest
/// size of a cluster that every device with clusters has.
constexpr int kSegments = kDrawSegments;

/// What is asked of each row; arrays as draw_tokens and score_tokens have them.
struct DrawJob {
  ColumnShare share;
  std::int64_t draws;
  float scale;  // exponent_scale
  const std::int64_t* rows;
  const std::int64_t* given;  // tokens that are scored; nullptr: tokens are drawn
  const double* uniforms;
  const std::int64_t* slots;
  DrawTargets targets;
  std::int64_t* words;  // what takes the draws instead of `targets`; nullptr: nothing
};

struct Segment {
  const float* logits;
  int first, length;  // columns; the first is counted over all shares
};
__host__ __device__ inline std::int64_t segment_columns(std::int64_t columns) {
  const std::int64_t length = (columns + kSegments - 1) / kSegments;
  return (length + 3) / 4 * 4;
}
__device__ inline Segment segment_of(const DrawJob& job, int draw, int index) {
  const ColumnShare& share = job.share;
  const std::int64_t wide = segment_columns(share.columns);
  const std::int64_t lo = min(index * wide, share.columns);
  const std::int64_t hi = min(lo + wide, share.columns);
  return {share.logits + job.rows[draw] * share.columns + lo, static_cast<int>(share.first + lo),
          static_cast<int>(hi - lo)};
}

__device__ inline float larger(float a, float b) {  // NaN where either is
  float c;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  return c;
}

/// The largest of the block's, on the threads of the first warp.
__device__ inline float block_highest(float x) {
  __shared__ float warps[kWarps];
  const int warp = static_cast<int>(threadIdx.x) / kWarp,
            lane = static_cast<int>(threadIdx.x) % kWarp;
  const auto reduce = [&] {
    for (int step = kWarp / 2; step > 0; step /= 2) {
      x = larger(x, __shfl_xor_sync(0xffffffffu, x, step));
    }
  };
  reduce();
  if (lane == 0) warps[warp] = x;
  __syncthreads();
  if (warp == 0) {
    x = warps[min(lane, kWarps - 1)];
    reduce();
  }
  return x;
}

__device__ inline std::int64_t warp_sum(std::int64_t x) {
  for (int step = kWarp / 2; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}
/// The sum of this lane's and those before it.
__device__ inline std::int64_t warp_running(std::int64_t x) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int step = 1; step < kWarp; step *= 2) {
    const std::int64_t left = __shfl_up_sync(0xffffffffu, x, step);
    if (lane >= step) x += left;
  }
  return x;
}

/// A thread's elements where their order matters. Their number is odd, so that threads that walk
/// through shared memory side by side meet no bank twice.
struct Slice {
  int lo, hi;
};
__device__ inline Slice slice_of(int length, int thread) {
  const int each = (length + kThreads - 1) / kThreads | 1;
  const int lo = min(thread * each, length);
  return {lo, min(lo + each, length)};
}

using Weights = ShareWeights;
__device__ inline bool keeps_all(const DrawOptions& options) {
  return !options.greedy && options.least_weight == 0;
}
/// Greedy: 1 for each of the largest, of which the first is drawn.
__device__ inline std::int64_t kept_of(const DrawOptions& options, float x, float top,
                                       std::int64_t weight) {
  if (options.greedy) return x == top ? 1 : 0;
  return weight >= options.least_weight ? weight : 0;
}
/// Of every `step`-th element from `lo` on.
__device__ inline Weights weights_of(const DrawOptions& options, float scale, const float* elements,
                                     int lo, int hi, int step, float top) {
  Weights sum{0, 0};
  if (keeps_all(options)) {
#pragma unroll 8
    for (int i = lo; i < hi; i += step) sum.all += draw_weight(elements[i], top, scale);
    sum.kept = sum.all;
    return sum;
  }
#pragma unroll 4
  for (int i = lo; i < hi; i += step) {
    const std::int64_t weight = draw_weight(elements[i], top, scale);
    sum.all += weight;
    sum.kept += kept_of(options, elements[i], top, weight);
  }
  return sum;
}
/// Sums over the block.
struct BlockSums {
  Weights all;               // on the threads of the first warp
  std::int64_t kept_before;  // of this warp's threads before this one
};
/// `warps` gets the sum of each warp.
__device__ inline BlockSums block_sums(const DrawOptions& options, Weights mine, Weights* warps) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp,
            lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::int64_t running = warp_running(mine.kept);
  const std::int64_t all = keeps_all(options) ? running : warp_sum(mine.all);
  if (lane == kWarp - 1) warps[warp] = {all, running};
  __syncthreads();
  BlockSums sums{{0, 0}, running - mine.kept};
  if (warp == 0) {
    if (lane < kWarps) sums.all = warps[lane];
    sums.all = {warp_sum(sums.all.all), warp_sum(sums.all.kept)};
  }
  return sums;
}

/// What the blocks of a row know of their segments, in the order of the columns: kSegments of each
/// share, those of the next `stride` further on.
template <typename Part>
struct RowParts {
  const Part* first;
  int shares = 1;
  std::int64_t stride = 0;
  __device__ const Part& operator[](int segment) const {
    return first[segment / kSegments * stride + segment % kSegments];
  }
  __device__ int count() const { return shares * kSegments; }
};
/// Of a draw's row, where parts lie by [share][draw][segment].
template <typename Part>
__device__ RowParts<Part> row_parts(const DrawJob& job, int draw, const Part* parts) {
  return {parts + std::int64_t{draw} * kSegments, job.share.ranks, job.draws * kSegments};
}

/// Sums over the row and, of what may be drawn, over the segments before this block's and its own.
struct RowSums {
  Weights row{0, 0};
  std::int64_t kept_before = 0, kept_here = 0;
};
__device__ inline RowSums row_sums(int segment, const RowParts<Weights>& parts) {
  RowSums sums;
  for (int s = 0; s < parts.count(); ++s) {
    const Weights weights = parts[s];
    sums.row.all += weights.all;
    sums.row.kept += weights.kept;
    if (s < segment) sums.kept_before += weights.kept;
    if (s == segment) sums.kept_here = weights.kept;
  }
  return sums;
}
/// NaN where the row holds one.
__device__ inline float highest_of(const RowParts<float>& parts) {
  float top = -INFINITY;
  for (int s = 0; s < parts.count(); ++s) top = larger(top, parts[s]);
  return top;
}

/// Of a token whose logit is `gap` above the largest.
__device__ inline float log_prob_of(double gap, const DrawOptions& options, const RowSums& sums) {
  return static_cast<float>(gap / options.temperature -
                            log(static_cast<double>(sums.row.all) / 1099511627776.0));
}

/// A draw in one word: token + 1 above the bits of its log-prob.
__device__ inline std::int64_t word_of(int token, float log_prob) {
  return (std::int64_t{token} + 1) << 32 | __float_as_uint(log_prob);
}

__device__ inline void put(const DrawJob& job, int draw, int token, float log_prob) {
  if (job.words != nullptr) {
    job.words[draw] = word_of(token, log_prob);
    return;
  }
  job.targets.log_probs[draw] = log_prob;
  if (job.given != nullptr) return;
  job.targets.tokens[draw] = token;
  job.targets.last_tokens[job.slots[draw]] = max(token, 0);
}

/// Writes the draw's results where its token lies in this block's segment, whose logits are
/// `elements`. `sums_here()` gives the block's sums over slices, and leaves those of warps in
/// `warps`; where they are not needed it is not called.
template <typename SumsHere>
__device__ void finish(const DrawOptions& options, const DrawJob& job, int draw, Segment segment,
                       const float* elements, float top, const RowSums& sums, const Weights* warps,
                       SumsHere sums_here) {
  if (!isfinite(top)) {
    if (segment.first == 0 && threadIdx.x == 0) put(job, draw, -1, log_prob_of(0, options, sums));
    return;
  }
  const auto put_token = [&](std::int64_t place) {
    const double gap = static_cast<double>(elements[place]) - top;
    put(job, draw, segment.first + static_cast<int>(place), log_prob_of(gap, options, sums));
  };
  if (job.given != nullptr) {
    const std::int64_t place = job.given[draw] - segment.first;
    if (threadIdx.x == 0 && place >= 0 && place < segment.length) put_token(place);
    return;
  }
  std::int64_t target = 0;
  if (!options.greedy) {
    target = static_cast<std::int64_t>(job.uniforms[draw] * static_cast<double>(sums.row.kept));
    target = min(target, sums.row.kept - 1);
  }
  target -= sums.kept_before;
  if (target < 0 || target >= sums.kept_here) return;
  std::int64_t before = sums_here().kept_before;
  const int warp = static_cast<int>(threadIdx.x) / kWarp,
            lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int w = 0; w < warp; ++w) target -= warps[w].kept;
  if (target < 0 || target >= warps[warp].kept) return;
  // The warp walks through the slice of its last lane that begins at or before the target.
  const unsigned begun = __ballot_sync(0xffffffffu, before <= target);
  const int owner = kWarp - 1 - __clz(static_cast<int>(begun));
  before = __shfl_sync(0xffffffffu, before, owner);
  const Slice slice = slice_of(segment.length, warp * kWarp + owner);
  for (int lo = slice.lo; lo < slice.hi; lo += kWarp) {
    const int i = lo + lane;
    std::int64_t kept = 0;
    if (i < slice.hi) {
      kept = kept_of(options, elements[i], top, draw_weight(elements[i], top, job.scale));
    }
    const std::int64_t running = before + warp_running(kept);
    const unsigned passed = __ballot_sync(0xffffffffu, running > target);
    if (passed != 0) {
      if (lane == __ffs(static_cast<int>(passed)) - 1) put_token(i);
      return;
    }
    before = __shfl_sync(0xffffffffu, running, kWarp - 1);
  }
}

}  // namespace tessera::kernels
