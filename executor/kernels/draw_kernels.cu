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
  __shared__ SegmentPart parts[kSegments];
  __shared__ Weights warps[kWarps];
  const cg::cluster_group cluster = cg::this_cluster();
  auto begun = cluster.barrier_arrive();
  const int thread = static_cast<int>(threadIdx.x);
  const int draw = static_cast<int>(blockIdx.x) / kSegments;
  const int index = static_cast<int>(blockIdx.x) % kSegments;
  const Segment segment = segment_of(job, draw, index);
  // Every thread reads again only what it has copied itself until the block meets.
  float highest = -INFINITY;
  if (job.columns % 4 == 0) {
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
  if (thread < kSegments) cluster.map_shared_rank(&parts[index], thread)->highest = highest;
  cluster.sync();
  const float top = highest_of(parts);

  const Slice slice = slice_of(segment.length, thread);
  const BlockSums here = block_sums(
      options, weights_of(options, job.scale, elements, slice.lo, slice.hi, 1, top), warps);
  if (thread < kSegments) cluster.map_shared_rank(&parts[index], thread)->weights = here.all;
  cluster.sync();
  finish(options, job, draw, segment, elements, top, row_sums(index, parts), warps,
         [&] { return here; });
#endif
}

// Where there are no clusters: a kernel for each of the three steps, a block for each segment.

struct Place {
  int draw, segment;
};
__device__ Place place_of_block() {
  return {static_cast<int>(blockIdx.x) / kSegments, static_cast<int>(blockIdx.x) % kSegments};
}

__global__ void highest_kernel(DrawJob job, SegmentPart* parts) {
  const Place at = place_of_block();
  const Segment segment = segment_of(job, at.draw, at.segment);
  float highest = -INFINITY;
  for (int i = static_cast<int>(threadIdx.x); i < segment.length; i += kThreads) {
    highest = larger(highest, segment.logits[i]);
  }
  highest = block_highest(highest);
  if (threadIdx.x == 0) parts[blockIdx.x].highest = highest;
}

__global__ void weight_kernel(DrawOptions options, DrawJob job, SegmentPart* parts) {
  __shared__ Weights warps[kWarps];
  const Place at = place_of_block();
  const Segment segment = segment_of(job, at.draw, at.segment);
  const float top = highest_of(parts + at.draw * kSegments);
  const Weights mine = weights_of(options, job.scale, segment.logits, static_cast<int>(threadIdx.x),
                                  segment.length, kThreads, top);
  const Weights sum = block_sums(options, mine, warps).all;
  if (threadIdx.x == 0) parts[blockIdx.x].weights = sum;
}

__global__ void finish_kernel(DrawOptions options, DrawJob job, const SegmentPart* parts) {
  __shared__ Weights warps[kWarps];
  const Place at = place_of_block();
  const Segment segment = segment_of(job, at.draw, at.segment);
  const SegmentPart* row = parts + at.draw * kSegments;
  const float top = highest_of(row);
  finish(options, job, at.draw, segment, segment.logits, top, row_sums(at.segment, row), warps,
         [&] {
           const Slice slice = slice_of(segment.length, static_cast<int>(threadIdx.x));
           return block_sums(
               options, weights_of(options, job.scale, segment.logits, slice.lo, slice.hi, 1, top),
               warps);
         });
}

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
  const std::int64_t columns = segment_columns(job.columns);
  const dim3 grid(static_cast<unsigned>(job.draws * kSegments));
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
  auto* parts = static_cast<SegmentPart*>(scratch);
  highest_kernel<<<grid, kThreads, 0, stream_of(stream)>>>(job, parts);
  weight_kernel<<<grid, kThreads, 0, stream_of(stream)>>>(options, job, parts);
  finish_kernel<<<grid, kThreads, 0, stream_of(stream)>>>(options, job, parts);
}

}  // namespace

std::int64_t draw_scratch_bytes(std::int64_t draws) {
  return draws * kSegments * static_cast<std::int64_t>(sizeof(SegmentPart));
}

void draw_tokens(const DrawOptions& options, const float* logits, std::int64_t columns,
                 const std::int64_t* rows, const double* uniforms, const std::int64_t* slots,
                 std::int64_t draws, const DrawTargets& targets, void* scratch, void* stream) {
  launch(options,
         {.logits = logits,
          .columns = columns,
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
         {.logits = logits,
          .columns = columns,
          .draws = count,
          .rows = rows,
          .given = tokens,
          .targets = {.log_probs = log_probs}},
         scratch, stream);
  check_launch("score_tokens");
}

}  // namespace tessera::kernels
