// ordered_attention of many queries a sequence: a thread block has 128 rows, and reads blocks of
// keys and values through shared memory, one after another.
#include "executor/kernels/ordered_attention.h"

#include "executor/kernels/ordered_blocks.cuh"
#include "executor/kernels/ordered_kernels.h"

namespace tessera::kernels {
namespace {

using namespace ordered;

constexpr int kWarps = 8, kThreads = kWarps * kLanes;
constexpr int kRows = kWarps * kTileRows;
constexpr int kBuffers = 3;  // of blocks of keys or of values

template <int DIM>
struct Shared {
  Rows<kBlockKeys, DIM> buffers[kBuffers];
  unsigned slots[2][kBlockKeys];          // of every other block
  float totals[kWarps][DIM / 2][kLanes];  // of the splits so far, by warp
};

template <int DIM>
__device__ void start_block(Shared<DIM>& shared, const void* memory, bool keys, int block,
                            int buffer) {
  copy_rows<kThreads, 8>(memory, keys, shared.slots[block % 2], threadIdx.x,
                         shared.buffers[buffer]);
}

/// One warp's rows over all blocks.
template <int DIM>
struct Tile {
  int group, column, window, last, lowest;  // last and lowest: positions of the warp's rows
  bool real;
  TileRow rows[2];
  std::uint32_t queries[DIM / 16][4];
  std::uint32_t weights[kSteps][4];
  float out[DIM / 8][4];                 // of the split
  RowState part[2], state[2], total[2];  // of the block, the split and those before

  /// Steps of the block that any of the rows sees.
  __device__ int steps(int block) const {
    const int first = block * kBlockKeys;
    if (!real || first > last) return 0;
    if (window > 0 && first + kBlockKeys <= lowest - window + 1) return 0;
    return min((last - first) / kStepKeys + 1, kSteps);
  }

  __device__ void see_block_keys(const Rows<kBlockKeys, DIM>& keys, int block, int count) {
    float scores[kSteps][2][4] = {};
#pragma unroll
    for (int j = 0; j < kSteps; ++j) {
      if (j >= count) continue;
      see_keys<DIM>(keys, j * kStepKeys, group, column, queries, scores[j]);
    }
    weigh<DIM>(scores, rows, block * kBlockKeys, window, column, weights, part);
  }

  __device__ void see_block_values(const Rows<kBlockKeys, DIM>& values, int count) {
    const Shares shares[2] = {fold(state[0], part[0]), fold(state[1], part[1])};
#pragma unroll
    for (int half = 0; half < DIM / 64; ++half) {
      float fresh[8][4] = {};
#pragma unroll
      for (int j = 0; j < kSteps; ++j) {
        if (j >= count) continue;
        see_values<DIM>(values, j * kStepKeys, group, column, half, weights[j], fresh);
      }
#pragma unroll
      for (int i = 0; i < 32; ++i) {
        float& value = out[8 * half + i / 4][i % 4];
        value = folded(value, fresh[i / 4][i % 4], shares[i % 4 / 2]);
      }
    }
  }

  /// Adds the split to those before, which lie in `totals`, and begins the next; the last one's sum
  /// stays in `out`.
  __device__ void end_split(float (&totals)[DIM / 2][kLanes], int lane, bool first, bool last_one) {
    const Shares shares[2] = {fold(total[0], state[0]), fold(total[1], state[1])};
#pragma unroll
    for (int i = 0; i < DIM / 2; ++i) {
      const float before = first ? 0.0F : totals[i][lane];
      float& value = out[i / 4][i % 4];
      value = folded(before, value, shares[i % 4 / 2]);
      if (last_one) continue;
      totals[i][lane] = value;
      value = 0;
    }
    state[0] = state[1] = RowState{};
  }

  __device__ void write(__nv_bfloat16* to, int r) const {
    constexpr int kTiles = DIM / 8;
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      std::uint32_t words[kTiles / 2];
#pragma unroll
      for (int t = 0; t < kTiles; t += 2) {
        words[t / 2] =
            packed(out[t][2 * r + c] / total[r].sum, out[t + 1][2 * r + c] / total[r].sum);
      }
      auto* row = reinterpret_cast<uint4*>(to + rows[r].place + (2 * column + c) * kTiles);
#pragma unroll
      for (int w = 0; w < kTiles / 2; w += 4) {
        row[w / 4] = {words[w], words[w + 1], words[w + 2], words[w + 3]};
      }
    }
  }
};

template <int DIM>
__global__ void __launch_bounds__(kThreads, 1)
    attend_tiles(OrderedShape shape, OrderedInput input) {
  extern __shared__ uint4 memory[];
  Shared<DIM>& shared = *reinterpret_cast<Shared<DIM>*>(memory);
  const int sequence = blockIdx.z, kv_head = blockIdx.y;
  // Long rows first, so that short ones fill the end.
  const int first_row = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kRows;
  const TileRows tile = rows_of(shape, input, sequence, kv_head, first_row, kRows);
  if (tile.rows <= 0) return;
  const int warp = threadIdx.x / kLanes, lane = threadIdx.x % kLanes, own = warp * kTileRows;
  Tile<DIM> mine{.group = lane / 4,
                 .column = lane % 4,
                 .window = static_cast<int>(shape.window),
                 .last = tile.at(own + kTileRows - 1).position,
                 .lowest = tile.at(own).position,
                 .real = own < tile.rows,
                 .rows = {tile.at(own + lane / 4), tile.at(own + lane / 4 + 8)}};
  load_queries<DIM>(input.q, mine.rows, mine.column, mine.queries);
#pragma unroll
  for (int i = 0; i < DIM / 2; ++i) mine.out[i / 4][i % 4] = 0;
  const Slots slot_of(shape, input, sequence, kv_head);
  const int lowest = mine.window > 0 ? max(0, tile.at(0).position - mine.window + 1) : 0;
  const int first = lowest / kBlockKeys, last = tile.at(tile.rows - 1).position / kBlockKeys;
  const auto note_slots = [&](int block, unsigned slot) {
    if (threadIdx.x < kBlockKeys) shared.slots[block % 2][threadIdx.x] = slot;
  };
  const auto slot_in = [&](int block) { return slot_of(block * kBlockKeys + threadIdx.x); };
  note_slots(first, slot_in(first));
  note_slots(first + 1, slot_in(first + 1));
  __syncthreads();
  start_block(shared, input.keys, true, first, 0);
  close_copies();
  start_block(shared, input.values, false, first, 1);
  close_copies();
  int now = 0;  // the buffer of what is looked at; the next but one is free
  for (int block = first; block <= last; ++block) {
    const int steps = mine.steps(block);
    await_copies<1>();
    __syncthreads();
    if (block < last) start_block(shared, input.keys, true, block + 1, (now + 2) % kBuffers);
    close_copies();
    if (steps > 0) mine.see_block_keys(shared.buffers[now], block, steps);
    now = (now + 1) % kBuffers;
    await_copies<1>();
    __syncthreads();
    if (block < last) start_block(shared, input.values, false, block + 1, (now + 2) % kBuffers);
    close_copies();
    const unsigned slot = slot_in(block + 2);  // on its way while values are added up
    if (steps > 0) mine.see_block_values(shared.buffers[now], steps);
    note_slots(block, slot);
    now = (now + 1) % kBuffers;
    if (block % kSplitBlocks == kSplitBlocks - 1 || block == last) {
      mine.end_split(shared.totals[warp], lane, block / kSplitBlocks == first / kSplitBlocks,
                     block == last);
    }
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (own + mine.group + 8 * r < tile.rows) {
      mine.write(static_cast<__nv_bfloat16*>(input.out), r);
    }
  }
}

template <int DIM>
void launch(const OrderedShape& shape, const OrderedInput& input, cudaStream_t stream) {
  const std::int64_t rows = shape.longest_queries * (shape.heads / shape.kv_heads);
  const dim3 grid(static_cast<unsigned>((rows + kRows - 1) / kRows),
                  static_cast<unsigned>(shape.kv_heads), static_cast<unsigned>(shape.rows));
  constexpr int kShared = sizeof(Shared<DIM>);
  cudaFuncSetAttribute(attend_tiles<DIM>, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
  attend_tiles<DIM><<<grid, kThreads, kShared, stream>>>(shape, input);
  check_launch("ordered_attention");
}

}  // namespace

void attend_many_queries(const OrderedShape& shape, const OrderedInput& input, void* stream) {
  if (shape.head_dim == 128) return launch<128>(shape, input, stream_of(stream));
  launch<64>(shape, input, stream_of(stream));
}

void ordered_attention(const OrderedShape& shape, const OrderedInput& input, void* stream) {
  if (shape.rows == 0) return;
  if (shape.head_dim != 64 && shape.head_dim != 128) {
    throw std::runtime_error("attention in the fixed order takes heads of 64 or 128 elements");
  }
  shape.longest_queries > 1 ? attend_many_queries(shape, input, stream)
                            : attend_one_query(shape, input, stream);
}

}  // namespace tessera::kernels
