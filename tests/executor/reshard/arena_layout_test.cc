#include "executor/reshard/arena_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cost_models/sample_models.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;

ParallelLayout tensor_parallel(int tp) { return {.tp = tp, .stages = even_stages(3, 1)}; }

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
  EXPECT_EQ(range_of(arena, down, part), (ByteRange{slot.range.offset + 5 * 10 * 4, 6 * 10 * 4}));
}

TEST(ArenaLayout, StoredSlotsHoldTheFsdpShard) {
  const ParameterTable table = parameter_table(odd_model());
  ParallelLayout layout = tensor_parallel(1);
  layout.dp_shard = 4, layout.zero = 3;
  std::int64_t elements = 0;
  for (int shard = 0; shard < 4; ++shard) {
    const RankCoord coord{.dp_shard = shard};
    const ArenaLayout arena = arena_layout(table, layout, coord, DType::bf16, true);
    for (const ArenaSlot& slot : arena.slots) elements += slot.range.bytes / 2;
  }
  EXPECT_EQ(elements, table.elements());
}

}  // namespace
}  // namespace tessera
