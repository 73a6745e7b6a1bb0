#include "executor/kernels/draw_kernels.h"

#include <cooperative_groups.h>
#include <cuda_pipeline.h>

#include <algorithm>

#include "executor/kernels/device_math.cuh"
#include "executor/kernels/draw_blocks.cuh"

namespace tessera::kernels {
namespace {

/// One cluster a draw; the segment stays in shared memory.
__global__ void __launch_bounds__(kThreads) cluster_draw_kernel(DrawOptions options, DrawJob job) {
#if __CUDA_ARCH__ >= 900
  namespace cg = cooperative_groups;
  extern __shared__ __align__(16) float elements[];
  __shared__ float tops[kSegments];
  __shared__ Weights sums[kSegments], warps[kWarps];
  const cg::cluster_group cluster = cg::this_cluster();
  auto begun = cluster.barrier_arrive();
  const int thread = static_cast<int>(threadIdx.x);
  const int draw = static_cast<int>(blockIdx.x) / kSegments;
  const int index = static_cast<int>(blockIdx.x) % kSegments;
  const Segment segment = segment_of(job, draw, index);
  // Every thread reads again only what it has copied itself until the block meets.
  float highest = -INFINITY;
  if (job.share.columns % 4 == 0) {
    for (int i = 4 * thread; i < segment.length; i += 4 * kThreads) {
      __pipeline_memcpy_async(elements + i, segment.logits + i, 16);
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);
    for (int i = 4 * thread; i < segment.length; i += 4 * kThreads) {
      const float4 x = *reinterpret_cast<const float4*>(elements + i);
      highest = larger(larger(larger(x.x, x.y), larger(x.z, x.w)), highest);
    }
  } else {
    for (int i = thread; i < segment.length; i += kThreads) {
      elements[i] = segment.logits[i];
      highest = larger(highest, elements[i]);
    }
  }
  // Each block writes its part into every block of the cluster, all of which have begun.
  highest = block_highest(highest);
  cluster.barrier_wait(std::move(begun));
  if (thread < kSegments) *cluster.map_shared_rank(&tops[index], thread) = highest;
  cluster.sync();
  const float top = highest_of({tops});

  const Slice slice = slice_of(segment.length, thread);
  const BlockSums here = block_sums(
      options, weights_of(options, job.scale, elements, slice.lo, slice.hi, 1, top), warps);
  if (thread < kSegments) *cluster.map_shared_rank(&sums[index], thread) = here.all;
  cluster.sync();
  finish(options, job, draw, segment, elements, top, row_sums(index, {sums}), warps,
         [&] { return here; });
#endif
}

// Where there are no clusters, or a row's columns are cut over GPUs: a kernel for each of the three
// steps, a block for each segment.

struct Place {
  int draw, segment;
};
__device__ Place place_of_block() {
  return {static_cast<int>(blockIdx.x) / kSegments, static_cast<int>(blockIdx.x) % kSegments};
}

__global__ void highest_kernel(DrawJob job, float* highest) {
  const Place at = place_of_block();
  const Segment segment = segment_of(job, at.draw, at.segment);
  float mine = -INFINITY;
#pragma unroll 8
  for (int i = static_cast<int>(threadIdx.x); i < segment.length; i += kThreads) {
    mine = larger(mine, segment.logits[i]);
  }
  mine = block_highest(mine);
  if (threadIdx.x == 0) highest[blockIdx.x] = mine;
}

/// `highest` by [share][draw][segment], `weights` of this share.
__global__ void weight_kernel(DrawOptions options, DrawJob job, const float* highest,
                              Weights* weights) {
  __shared__ Weights warps[kWarps];
  const Place at = place_of_block();
  const Segment segment = segment_of(job, at.draw, at.segment);
  const float top = highest_of(row_parts(job, at.draw, highest));
  const Weights mine = weights_of(options, job.scale, segment.logits, static_cast<int>(threadIdx.x),
                                  segment.length, kThreads, top);
  const Weights sum = block_sums(options, mine, warps).all;
  if (threadIdx.x == 0) weights[blockIdx.x] = sum;
}

/// Both by [share][draw][segment].
__global__ void finish_kernel(DrawOptions options, DrawJob job, const float* highest,
                              const Weights* weights) {
  __shared__ Weights warps[kWarps];
  const Place at = place_of_block();
  const Segment segment = segment_of(job, at.draw, at.segment);
  const float top = highest_of(row_parts(job, at.draw, highest));
  const RowSums sums =
      row_sums(job.share.rank * kSegments + at.segment, row_parts(job, at.draw, weights));
  finish(options, job, at.draw, segment, segment.logits, top, sums, warps, [&] {
    const Slice slice = slice_of(segment.length, static_cast<int>(threadIdx.x));
    return block_sums(
        options, weights_of(options, job.scale, segment.logits, slice.lo, slice.hi, 1, top), warps);
  });
}

__global__ void put_kernel(const std::int64_t* words, const std::int64_t* slots, std::int64_t draws,
                           DrawTargets targets) {
  const std::int64_t draw = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (draw >= draws) return;
  const int token = static_cast<int>(words[draw] >> 32) - 1;
  targets.tokens[draw] = token;
  targets.log_probs[draw] = __uint_as_float(static_cast<unsigned>(words[draw]));
  targets.last_tokens[slots[draw]] = max(token, 0);
}

dim3 grid_of(std::int64_t draws) { return {static_cast<unsigned>(draws * kSegments)}; }

/// Whether this device has code for clusters whose shared memory holds a row.
bool cluster_holds(std::int64_t bytes) {
  cudaFuncAttributes kernel{};
  int device = 0, most = 0;
  if (cudaFuncGetAttributes(&kernel, cluster_draw_kernel) != cudaSuccess) return false;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  const auto reserved = static_cast<std::int64_t>(kernel.sharedSizeBytes);
  return kernel.ptxVersion >= 90 && bytes + reserved <= most;
}

void launch(const DrawOptions& options, DrawJob job, void* scratch, void* stream) {
  const std::int64_t columns = segment_columns(job.share.columns);
  const dim3 grid = grid_of(job.draws);
  job.scale = exponent_scale(options.temperature);
  const auto bytes = columns * static_cast<std::int64_t>(sizeof(float));
  if (cluster_holds(bytes)) {
    cudaFuncSetAttribute(cluster_draw_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         static_cast<int>(bytes));
    cudaLaunchAttribute cluster{};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {kSegments, 1, 1};
    cudaLaunchConfig_t config{};
    config.gridDim = grid;
    config.blockDim = dim3(kThreads);
    config.dynamicSmemBytes = static_cast<std::size_t>(bytes);
    config.stream = stream_of(stream);
    config.attrs = &cluster;
    config.numAttrs = 1;
    cudaLaunchKernelEx(&config, cluster_draw_kernel, options, job);
    return;
  }
  auto* weights = static_cast<Weights*>(scratch);
  auto* highest = reinterpret_cast<float*>(weights + job.draws * kSegments);
  highest_kernel<<<grid, kThreads, 0, stream_of(stream)>>>(job, highest);
  weight_kernel<<<grid, kThreads, 0, stream_of(stream)>>>(options, job, highest, weights);
  finish_kernel<<<grid, kThreads, 0, stream_of(stream)>>>(options, job, highest, weights);
}

}  // namespace

std::int64_t draw_scratch_bytes(std::int64_t draws) {
  return draws * kSegments * static_cast<std::int64_t>(sizeof(Weights) + sizeof(float));
}

void draw_tokens(const DrawOptions& options, const float* logits, std::int64_t columns,
                 const std::int64_t* rows, const double* uniforms, const std::int64_t* slots,
                 std::int64_t draws, const DrawTargets& targets, void* scratch, void* stream) {
  launch(options,
         {.share = {.logits = logits, .columns = columns},
          .draws = draws,
          .rows = rows,
          .uniforms = uniforms,
          .slots = slots,
          .targets = targets},
         scratch, stream);
  check_launch("draw_tokens");
}

void score_tokens(const DrawOptions& options, const float* logits, std::int64_t columns,
                  const std::int64_t* rows, const std::int64_t* tokens, std::int64_t count,
                  float* log_probs, void* scratch, void* stream) {
  if (count == 0) return;
  launch(options,
         {.share = {.logits = logits, .columns = columns},
          .draws = count,
          .rows = rows,
          .given = tokens,
          .targets = {.log_probs = log_probs}},
         scratch, stream);
  check_launch("score_tokens");
}

void share_highest(const ColumnShare& share, const std::int64_t* rows, std::int64_t draws,
                   float* highest, void* stream) {
  highest_kernel<<<grid_of(draws), kThreads, 0, stream_of(stream)>>>(
      {.share = share, .draws = draws, .rows = rows}, highest);
  check_launch("share_highest");
}

void share_weights(const DrawOptions& options, const ColumnShare& share, const std::int64_t* rows,
                   std::int64_t draws, const float* highest, ShareWeights* weights, void* stream) {
  weight_kernel<<<grid_of(draws), kThreads, 0, stream_of(stream)>>>(
      options,
      {.share = share, .draws = draws, .scale = exponent_scale(options.temperature), .rows = rows},
      highest, weights);
  check_launch("share_weights");
}

void share_draws(const DrawOptions& options, const ColumnShare& share, const std::int64_t* rows,
                 const double* uniforms, std::int64_t draws, const float* highest,
                 const ShareWeights* weights, std::int64_t* words, void* stream) {
  finish_kernel<<<grid_of(draws), kThreads, 0, stream_of(stream)>>>(
      options,
      {.share = share,
       .draws = draws,
       .scale = exponent_scale(options.temperature),
       .rows = rows,
       .uniforms = uniforms,
       .words = words},
      highest, weights);
  check_launch("share_draws");
}

void put_draws(const std::int64_t* words, const std::int64_t* slots, std::int64_t draws,
               const DrawTargets& targets, void* stream) {
  const dim3 grid(static_cast<unsigned>((draws + kThreads - 1) / kThreads));
  put_kernel<<<grid, kThreads, 0, stream_of(stream)>>>(words, slots, draws, targets);
  check_launch("put_draws");
}

}  // namespace tessera::kernels
