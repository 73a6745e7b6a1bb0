#include "executor/arena/arena_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "executor/arena/shared_arena.h"
#include "tests/cost_models/layout/sample_models.h"
#include "tests/executor/reshard/layout_cases.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;

ParallelLayout tensor_parallel(int tp) { return {{.tp = tp}, 0, even_stages(3, 1)}; }

TEST(ArenaLayout, SlotsAreAlignedUnlessTheyJoinAFusedTensor) {
  const ParameterTable table = parameter_table(odd_model());
  const ArenaLayout arena = arena_layout(table, tensor_parallel(2), {.tp = 1}, DType::bf16);
  std::int64_t end = 0;
  for (const ArenaSlot& slot : arena.slots) {
    if (table.rows[static_cast<size_t>(slot.tensor)].part > 0) {
      EXPECT_EQ(slot.range.offset, end);
    } else {
      EXPECT_EQ(slot.range.offset % 256, 0);
      EXPECT_GE(slot.range.offset, end);
    }
    EXPECT_EQ(slot.range.bytes, volume(slot.box) * 2);
    end = slot.range.offset + slot.range.bytes;
  }
  EXPECT_GE(arena.bytes, end);
  EXPECT_EQ(arena.bytes % 256, 0);
}

TEST(ArenaLayout, ARowParallelWeightLiesTransposed) {
  const ParameterTable table = parameter_table(odd_model());
  const ArenaLayout arena = arena_layout(table, tensor_parallel(1), {}, DType::fp32);
  const int down = *table.find("model.layers.1.mlp.down_proj.weight");
  const ArenaSlot& slot =
      arena.slots[static_cast<size_t>(arena.slot_of[static_cast<size_t>(down)])];
  EXPECT_THAT(slot.memory_shape(), ElementsAre(11, 10));
  // The part of tp 2, rank 1 is columns [5, 11) of ffn: rows 5.. of what lies in memory.
  const Box part = restricted(slot.box, 1, {5, 11});
  constexpr std::int64_t kRow = 40;  // bytes of 10 columns in fp32
  EXPECT_EQ(range_of(arena, down, part), (ByteRange{slot.range.offset + 5 * kRow, 6 * kRow}));
}

TEST(ArenaLayout, StoredSlotsHoldTheFsdpShard) {
  const ParameterTable table = parameter_table(odd_model());
  ParallelLayout layout = tensor_parallel(1);
  layout.dp = layout.dp_shard = 4, layout.zero = 3;
  std::int64_t elements = 0;
  for (int shard = 0; shard < 4; ++shard) {
    const RankCoord coord{.dp_shard = shard};
    const ArenaLayout arena = arena_layout(table, layout, coord, DType::bf16, true);
    for (const ArenaSlot& slot : arena.slots) elements += slot.range.bytes / 2;
  }
  EXPECT_EQ(elements, table.elements());
}

TEST(SharedArena, ATrainingSlotIsAViewOfTheRolloutsOrLiesBehindAll) {
  const ModelSpec model = odd_model(5);
  const ParameterTable table = parameter_table(model);
  for (const ParallelLayout& from : four_rank_layouts(model.layers)) {
    for (const ParallelLayout& to : four_rank_layouts(model.layers)) {
      for (int rank = 0; rank < 4; ++rank) {
        SCOPED_TRACE(describe(from) + " -> " + describe(to) + ", rank " + std::to_string(rank));
        const SharedArena shared =
            shared_arena_on(table, contiguous(from), contiguous(to), rank, DType::bf16);
        std::int64_t end = shared.rollout.bytes, views = 0, behind = 0;
        for (const ArenaSlot& slot : shared.training.slots) {
          if (slot.range.offset >= shared.rollout.bytes) {
            EXPECT_GE(slot.range.offset, end);
            end = slot.range.offset + slot.range.bytes;
            behind += slot.range.bytes;
          } else {
            EXPECT_EQ(slot.range, range_of(shared.rollout, slot.tensor, slot.box));
            views += slot.range.bytes;
          }
        }
        EXPECT_LE(end, shared.bytes);
        EXPECT_LT(shared.bytes - end, 256);
        EXPECT_EQ(behind, shared.held_twice);
        EXPECT_EQ(views, spared_bytes(shared));
      }
    }
  }
}

TEST(SharedArena, OfARankWithOnePartIsThatPartsLayout) {
  const ModelSpec model = odd_model(4);
  const ParameterTable table = parameter_table(model);
  const ParallelLayout half = layout_of(2, 1, 1, model.layers);
  const RankMap first = contiguous(half), second = contiguous(half, 2);
  const auto offsets = [](const ArenaLayout& arena) {
    std::vector<std::int64_t> all;
    for (const ArenaSlot& slot : arena.slots) all.push_back(slot.range.offset);
    return all;
  };
  const ArenaLayout alone = arena_layout(table, half, first.coords[1], DType::bf16);
  const SharedArena trains = shared_arena_on(table, first, second, 1, DType::bf16);
  EXPECT_TRUE(trains.rollout.slots.empty());
  EXPECT_EQ(offsets(trains.training), offsets(alone));
  EXPECT_EQ(trains.bytes, alone.bytes);
  const SharedArena generates = shared_arena_on(table, first, second, 3, DType::bf16);
  EXPECT_TRUE(generates.training.slots.empty());
  EXPECT_EQ(offsets(generates.rollout), offsets(alone));
  EXPECT_EQ(generates.bytes, alone.bytes);
  EXPECT_EQ(spared_bytes(generates), 0);
}

}  // namespace
}  // namespace tessera
