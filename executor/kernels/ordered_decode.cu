// ordered_attention of one query a sequence: many keys for few rows. A warp has a block of keys, a
// thread block a split; splits of one sequence run beside one another and are folded afterwards.
#include "executor/kernels/ordered_blocks.cuh"
#include "executor/kernels/ordered_kernels.h"

namespace tessera::kernels {
namespace {

using namespace ordered;

constexpr int kThreads = kSplitBlocks * kLanes;

/// Of one tile and split: values [rows, DIM], then states [rows].
struct Scratch {
  float* data;
  std::int64_t tile_rows, splits;
  int dim;

  __device__ float* values(std::int64_t tile, std::int64_t split) const {
    return data + (tile * splits + split) * tile_rows * (dim + 2);
  }
  __device__ RowState* states(std::int64_t tile, std::int64_t split) const {
    return reinterpret_cast<RowState*>(values(tile, split) + tile_rows * dim);
  }
};

std::int64_t splits_of(const OrderedShape& shape) {
  return (shape.row_pages * shape.page_tokens + kSplitKeys - 1) / kSplitKeys;
}
std::int64_t tile_rows_of(const OrderedShape& shape) {
  const std::int64_t share = shape.heads / shape.kv_heads;
  return share < kTileRows ? share : kTileRows;
}
std::int64_t tiles_of(const OrderedShape& shape) {
  return (shape.heads / shape.kv_heads + kTileRows - 1) / kTileRows;
}

/// The splits that a query sees.
struct SplitRange {
  int first, last;
};
__device__ SplitRange splits_seen(int position, int window) {
  return {window > 0 ? max(0, position - window + 1) / kSplitKeys : 0, position / kSplitKeys};
}

/// A warp's memory: the steps of its block on their way, and then its result.
template <int DIM>
struct WarpMemory {
  static constexpr int kStages = DIM == 128 ? 4 : 6;
  union {
    Rows<kStepKeys, DIM> stages[kStages];
    float out[DIM / 2][kLanes];  // a lane's values, 32 lanes beside one another
  };
  unsigned slots[kBlockKeys];
  RowState states[kTileRows];
};

/// A block of keys on its way to a warp: steps of keys, then as many of values.
template <int DIM>
struct Block {
  static constexpr int kStages = WarpMemory<DIM>::kStages;
  const void *keys, *values;
  int steps, lane;

  __device__ static const Rows<kStepKeys, DIM>& stage(const WarpMemory<DIM>& memory, int i) {
    return memory.stages[i % kStages];
  }
  __device__ void start(WarpMemory<DIM>& memory, int i) const {
    if (i < 2 * steps) {
      const bool of_keys = i < steps;
      const unsigned* const slots = memory.slots + (of_keys ? i : i - steps) * kStepKeys;
      copy_rows<kLanes, DIM / 8>(of_keys ? keys : values, of_keys, slots, lane,
                                 memory.stages[i % kStages]);
    }
    close_copies();
  }
  /// Returns when step i is there; the next that there is room for is begun.
  __device__ void await(WarpMemory<DIM>& memory, int i) const {
    await_copies<kStages - 2>();
    __syncwarp();
    start(memory, i + kStages - 1);
  }
};

/// The block's softmax and its values, multiplied by their weights.
template <int DIM>
__device__ void attend_block(const Block<DIM>& block, WarpMemory<DIM>& memory, const void* q,
                             const TileRow (&rows)[2], int first, int window, RowState (&state)[2],
                             float (&out)[DIM / 8][4]) {
  const int group = block.lane / 4, column = block.lane % 4;
  for (int i = 0; i < Block<DIM>::kStages - 1; ++i) block.start(memory, i);
  std::uint32_t weights[kSteps][4];
  {
    std::uint32_t queries[DIM / 16][4];
    load_queries<DIM>(q, rows, column, queries);
    float scores[kSteps][2][4] = {};
#pragma unroll
    for (int j = 0; j < kSteps; ++j) {
      if (j >= block.steps) continue;
      block.await(memory, j);
      see_keys<DIM>(block.stage(memory, j), 0, group, column, queries, scores[j]);
    }
    weigh<DIM>(scores, rows, first, window, column, weights, state);
  }
#pragma unroll
  for (int j = 0; j < kSteps; ++j) {
    if (j >= block.steps) continue;
    block.await(memory, block.steps + j);
#pragma unroll
    for (int part = 0; part < DIM / 64; ++part) {
      see_values<DIM>(block.stage(memory, block.steps + j), 0, group, column, part, weights[j],
                      out + 8 * part);
    }
  }
}

/// 4 dims that follow one another in a tile's row, and where a lane's values hold them.
template <int DIM>
struct Quad {
  int row, dim, at[4];

  __device__ Quad(int index, int lane) {
    const int r = index / (DIM / 16), c = index / (DIM / 32) % 2, t = index % (DIM / 32) * 4;
    row = lane / 4 + 8 * r;
    dim = (2 * (lane % 4) + c) * (DIM / 8) + t;
#pragma unroll
    for (int i = 0; i < 4; ++i) at[i] = (t + i) * 4 + 2 * r + c;
  }
};

/// Folds the blocks of a split in their order.
template <int DIM>
__device__ float4 folded_blocks(const WarpMemory<DIM>* parts, const Quad<DIM>& quad, int lane,
                                int first, int last, RowState& state) {
  float4 sum{0, 0, 0, 0};
  for (int block = first; block <= last; ++block) {
    const Shares shares = fold(state, parts[block].states[quad.row]);
    const auto& out = parts[block].out;
    sum = {
        folded(sum.x, out[quad.at[0]][lane], shares), folded(sum.y, out[quad.at[1]][lane], shares),
        folded(sum.z, out[quad.at[2]][lane], shares), folded(sum.w, out[quad.at[3]][lane], shares)};
  }
  return sum;
}

__device__ void write_row(__nv_bfloat16* to, float4 values, float sum) {
  const uint2 words{packed(values.x / sum, values.y / sum), packed(values.z / sum, values.w / sum)};
  *reinterpret_cast<uint2*>(to) = words;
}

/// A warp's block of keys; the result stays in its memory.
template <int DIM>
__device__ void attend_one_block(const OrderedShape& shape, const OrderedInput& input,
                                 const TileRows& tile, int sequence, int first,
                                 WarpMemory<DIM>& memory) {
  const int lane = threadIdx.x % kLanes;
  const Block<DIM> block{.keys = input.keys,
                         .values = input.values,
                         .steps = min((tile.ahead - first) / kStepKeys + 1, kSteps),
                         .lane = lane};
  const Slots slot_of(shape, input, sequence, static_cast<int>(tile.kv_head));
#pragma unroll
  for (int i = lane; i < kBlockKeys; i += kLanes) memory.slots[i] = slot_of(first + i);
  __syncwarp();
  const TileRow rows[2] = {tile.at(lane / 4), tile.at(lane / 4 + 8)};
  RowState state[2];
  float out[DIM / 8][4] = {};
  attend_block<DIM>(block, memory, input.q, rows, first, static_cast<int>(shape.window), state,
                    out);
  __syncwarp();  // the last step was read by all
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (lane % 4 == 0) memory.states[lane / 4 + 8 * r] = state[r];
  }
#pragma unroll
  for (int i = 0; i < DIM / 2; ++i) memory.out[i][lane] = out[i / 4][i % 4];
}

template <int DIM>
__global__ void __launch_bounds__(kThreads, DIM == 128 ? 3 : 4)
    attend_splits(OrderedShape shape, OrderedInput input, Scratch scratch) {
  extern __shared__ uint4 shared[];
  auto* const parts = reinterpret_cast<WarpMemory<DIM>*>(shared);
  const int split = blockIdx.x, sequence = blockIdx.z;
  const int kv_head = static_cast<int>(blockIdx.y % shape.kv_heads);
  const int first_row = static_cast<int>(blockIdx.y / shape.kv_heads) * kTileRows;
  const TileRows tile = rows_of(shape, input, sequence, kv_head, first_row, kTileRows);
  if (tile.rows <= 0) return;
  const int window = static_cast<int>(shape.window), position = tile.ahead;
  const SplitRange seen = splits_seen(position, window);
  if (split < seen.first || split > seen.last) return;
  const int warp = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
  const int lowest = window > 0 ? max(0, position - window + 1) : 0;
  const int before = split * kSplitBlocks;
  const int first_block = max(lowest / kBlockKeys - before, 0);
  const int last_block = min(position / kBlockKeys - before, kSplitBlocks - 1);
  if (warp >= first_block && warp <= last_block) {
    attend_one_block<DIM>(shape, input, tile, sequence, (before + warp) * kBlockKeys, parts[warp]);
  }
  __syncthreads();
  const std::int64_t index = std::int64_t{sequence} * gridDim.y + blockIdx.y;
  for (int i = warp; i < DIM / 8; i += kSplitBlocks) {
    const Quad<DIM> quad(i, lane);
    if (quad.row >= tile.rows) continue;
    RowState state;
    const float4 sum = folded_blocks<DIM>(parts, quad, lane, first_block, last_block, state);
    if (seen.first == seen.last) {
      write_row(static_cast<__nv_bfloat16*>(input.out) + tile.at(quad.row).place + quad.dim, sum,
                state.sum);
      continue;
    }
    float* const to = scratch.values(index, split) + quad.row * DIM + quad.dim;
    *reinterpret_cast<float2*>(to) = {sum.x, sum.y};
    *reinterpret_cast<float2*>(to + 2) = {sum.z, sum.w};
    if (quad.dim == 0) scratch.states(index, split)[quad.row] = state;
  }
}

/// Folds the splits of a sequence in their order; a warp has a row.
template <int DIM>
__global__ void __launch_bounds__(kTileRows* kLanes)
    fold_splits(OrderedShape shape, OrderedInput input, Scratch scratch) {
  const int sequence = blockIdx.y, row = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
  const int kv_head = static_cast<int>(blockIdx.x % shape.kv_heads);
  const int first_row = static_cast<int>(blockIdx.x / shape.kv_heads) * kTileRows;
  const TileRows tile = rows_of(shape, input, sequence, kv_head, first_row, kTileRows);
  const SplitRange seen = splits_seen(tile.ahead, static_cast<int>(shape.window));
  if (row >= tile.rows || seen.first == seen.last) return;
  const std::int64_t index = std::int64_t{sequence} * gridDim.x + blockIdx.x;
  RowState state;
  float2 sums[DIM / 64] = {};
  for (int split = seen.first; split <= seen.last; ++split) {
    const Shares shares = fold(state, scratch.states(index, split)[row]);
    const auto* from = reinterpret_cast<const float2*>(scratch.values(index, split) + row * DIM);
#pragma unroll
    for (int i = 0; i < DIM / 64; ++i) {
      const float2 part = from[i * kLanes + lane];
      sums[i] = {folded(sums[i].x, part.x, shares), folded(sums[i].y, part.y, shares)};
    }
  }
  auto* to =
      reinterpret_cast<std::uint32_t*>(static_cast<__nv_bfloat16*>(input.out) + tile.at(row).place);
#pragma unroll
  for (int i = 0; i < DIM / 64; ++i) {
    to[i * kLanes + lane] = packed(sums[i].x / state.sum, sums[i].y / state.sum);
  }
}

template <int DIM>
void launch(const OrderedShape& shape, const OrderedInput& input, cudaStream_t stream) {
  const std::int64_t splits = splits_of(shape);
  const Scratch scratch{static_cast<float*>(input.scratch), tile_rows_of(shape), splits, DIM};
  const auto tiles = static_cast<unsigned>(shape.kv_heads * tiles_of(shape));
  const auto rows = static_cast<unsigned>(shape.rows);
  constexpr int kShared = kSplitBlocks * sizeof(WarpMemory<DIM>);
  cudaFuncSetAttribute(attend_splits<DIM>, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
  attend_splits<DIM>
      <<<dim3(static_cast<unsigned>(splits), tiles, rows), kThreads, kShared, stream>>>(
          shape, input, scratch);
  check_launch("ordered_attention of splits");
  if (splits == 1) return;
  fold_splits<DIM>
      <<<dim3(tiles, rows), static_cast<unsigned>(tile_rows_of(shape)) * kLanes, 0, stream>>>(
          shape, input, scratch);
  check_launch("ordered_attention of sequences");
}

}  // namespace

std::int64_t ordered_scratch_bytes(const OrderedShape& shape) {
  const std::int64_t splits = splits_of(shape);
  if (shape.longest_queries > 1 || splits == 1) return 0;
  return shape.rows * shape.kv_heads * tiles_of(shape) * splits * tile_rows_of(shape) *
         (shape.head_dim + 2) * static_cast<std::int64_t>(sizeof(float));
}

void attend_one_query(const OrderedShape& shape, const OrderedInput& input, void* stream) {
  if (shape.head_dim == 128) return launch<128>(shape, input, stream_of(stream));
  launch<64>(shape, input, stream_of(stream));
}

}  // namespace tessera::kernels
