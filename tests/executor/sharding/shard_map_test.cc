#include "executor/sharding/shard_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "cost_models/layout/sharding.h"
#include "executor/arena/arena_layout.h"

namespace tessera {
namespace {

ModelSpec model() {
  ModelSpec spec;
  spec.layers = 3;
  spec.hidden = 30;
  spec.query_heads = 5;
  spec.kv_heads = 5;
  spec.head_dim = 6;
  spec.ffn = 44;
  spec.vocab = 67;
  spec.qkv_bias = true;
  return spec;
}

ParallelLayout layout_of(int tp, int dp, int dp_shard, int zero) {
  return {{.tp = tp, .dp = (dp_shard > 1 ? 1 : dp) * dp_shard, .dp_shard = dp_shard},
          zero,
          even_stages(3, 1)};
}

/// Every element of every held row belongs to exactly one rank, and no rank's shard space overlaps
/// itself.
void expect_partition(ShardKind kind, const ParallelLayout& layout, const RankCoord& coord,
                      int shards) {
  const ParameterTable table = parameter_table(model());
  const ArenaLayout arena = arena_layout(table, layout, coord, DType::bf16);
  std::vector<ShardMap> maps;
  for (int rank = 0; rank < shards; ++rank) {
    maps.push_back(make_shard_map(table, layout, coord, DType::bf16, kind, shards, rank));
  }
  std::vector<std::vector<int>> owners(table.rows.size());
  for (const ArenaSlot& slot : arena.slots) {
    owners[static_cast<std::size_t>(slot.tensor)].assign(
        static_cast<std::size_t>(slot.range.bytes / arena.element_bytes), 0);
  }
  for (int rank = 0; rank < maps[0].shards; ++rank) {
    const ShardMap& map = maps[static_cast<std::size_t>(rank)];
    std::vector<int> used(static_cast<std::size_t>(map.elements), 0);
    for (const ShardBucket& bucket : map.buckets) {
      for (const ShardSegment& s : map.own(bucket)) {
        EXPECT_LE(s.block + s.count, bucket.block);
        EXPECT_EQ(table.rows[static_cast<std::size_t>(s.row)].layer,
                  std::max(bucket.layer, std::int64_t{-1}));
        for (std::int64_t i = 0; i < s.count; ++i) {
          ++owners[static_cast<std::size_t>(s.row)][static_cast<std::size_t>(s.first + i)];
          ++used[static_cast<std::size_t>(s.shard + i)];
        }
      }
    }
    EXPECT_EQ(std::count_if(used.begin(), used.end(), [](int n) { return n > 1; }), 0);
  }
  for (const auto& row : owners) {
    EXPECT_EQ(std::count(row.begin(), row.end(), 1), static_cast<std::ptrdiff_t>(row.size()));
  }
}

TEST(ShardMap, GivesEveryElementToExactlyOneRank) {
  for (const int tp : {1, 2}) {
    for (const int shards : {2, 3, 4}) {
      for (int t = 0; t < tp; ++t) {
        expect_partition(ShardKind::flat, layout_of(tp, shards, 1, 2), {.tp = t}, shards);
        expect_partition(ShardKind::stored, layout_of(tp, 1, shards, 3), {.tp = t}, shards);
        expect_partition(ShardKind::none, layout_of(tp, shards, 1, 0), {.tp = t}, shards);
      }
    }
  }
}

TEST(ShardMap, OfFsdpIsTheStoredArenaThatAReshardReads) {
  const ParameterTable table = parameter_table(model());
  const ParallelLayout layout = layout_of(2, 1, 3, 3);
  for (int rank = 0; rank < 3; ++rank) {
    const RankCoord coord{.tp = 1, .dp_shard = rank};
    const ArenaLayout stored = arena_layout(table, layout, coord, DType::fp32, true);
    const ShardMap map =
        make_shard_map(table, layout, coord, DType::fp32, ShardKind::stored, 3, rank);
    EXPECT_EQ(map.elements * 4, stored.bytes);
    for (const ShardBucket& bucket : map.buckets) {
      for (const ShardSegment& s : map.own(bucket)) {
        const int slot = stored.slot_of[static_cast<std::size_t>(s.row)];
        ASSERT_GE(slot, 0);
        EXPECT_EQ(stored.slots[static_cast<std::size_t>(slot)].range,
                  (ByteRange{s.shard * 4, s.count * 4}));
      }
    }
  }
}

TEST(ShardMap, PartsOfABucketAreItsRowsAndEvenOnesLieInRankOrder) {
  const ParameterTable table = parameter_table(model());
  for (const int shards : {2, 3, 5}) {
    std::vector<ShardMap> maps;
    for (int rank = 0; rank < shards; ++rank) {
      maps.push_back(make_shard_map(table, layout_of(1, 1, shards, 3), {.dp_shard = rank},
                                    DType::bf16, ShardKind::stored, shards, rank));
    }
    bool some_even = false, some_rest = false;
    for (std::size_t b = 0; b < maps[0].buckets.size(); ++b) {
      const std::size_t rows = maps[0].buckets[b].rows.size();
      const BucketParts first = parts_of(maps[0].buckets[b], 0);
      EXPECT_EQ(first.even.size() + first.rest.rows.size(), rows);
      some_even = some_even || !first.even.empty();
      some_rest = some_rest || !first.rest.rows.empty();
      for (int rank = 0; rank < shards; ++rank) {
        const ShardMap& map = maps[static_cast<std::size_t>(rank)];
        const BucketParts parts = parts_of(map.buckets[b], rank);
        ASSERT_EQ(parts.even.size(), first.even.size());
        for (std::size_t i = 0; i < parts.even.size(); ++i) {
          const EvenRow& even = parts.even[i];
          EXPECT_EQ(even.row, first.even[i].row);
          const auto& own = map.own(map.buckets[b]);
          const auto segment = std::find_if(
              own.begin(), own.end(), [&](const ShardSegment& s) { return s.row == even.row; });
          ASSERT_NE(segment, own.end());
          EXPECT_EQ(segment->first, rank * even.count);
          EXPECT_EQ(segment->count, even.count);
          EXPECT_EQ(segment->shard, even.shard);
          EXPECT_EQ(even.count * shards, table.rows[static_cast<std::size_t>(even.row)].elements());
        }
        for (const ShardSegment& s : parts.rest.of_rank[static_cast<std::size_t>(rank)]) {
          EXPECT_LE(s.block + s.count, parts.rest.block);
        }
      }
    }
    EXPECT_TRUE(some_even || shards == 3) << shards;
    EXPECT_TRUE(some_rest) << shards;
  }
}

TEST(ShardMap, WhatFollowsTheLayersIsABucketOfItsOwnUnlessTheEmbeddingIsTied) {
  ModelSpec spec = model();
  const auto map_of = [&] {
    return make_shard_map(parameter_table(spec), layout_of(1, 1, 2, 3), {}, DType::bf16,
                          ShardKind::stored, 2, 0);
  };
  spec.tied_embeddings = false;
  const ShardMap untied = map_of();
  ASSERT_NE(untied.back(), nullptr);
  EXPECT_EQ(untied.front().rows.size(), 1u);
  EXPECT_EQ(untied.back()->rows.size(), 2u);
  spec.tied_embeddings = true;
  const ShardMap tied = map_of();
  EXPECT_EQ(tied.back(), nullptr);
  EXPECT_EQ(tied.front().rows.size(), 2u);
}

TEST(ShardMap, KeepsFusedProjectionsAdjoined) {
  const ParameterTable table = parameter_table(model());
  const ShardMap map =
      make_shard_map(table, layout_of(1, 2, 1, 2), {}, DType::bf16, ShardKind::flat, 2, 0);
  const ShardBucket& bucket = map.of_layer(1);
  for (std::size_t i = 1; i < bucket.rows.size(); ++i) {
    const Parameter& before = table.rows[static_cast<std::size_t>(bucket.rows[i - 1])];
    const Parameter& row = table.rows[static_cast<std::size_t>(bucket.rows[i])];
    if (row.part == 0 || row.storage != before.storage) continue;
    EXPECT_EQ(bucket.place[i], bucket.place[i - 1] + before.elements()) << row.name;
  }
}

}  // namespace
}  // namespace tessera
