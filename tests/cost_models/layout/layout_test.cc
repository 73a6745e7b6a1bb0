#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cost_models/documents/problem.h"
#include "cost_models/layout/box.h"
#include "cost_models/layout/parameter_table.h"
#include "cost_models/layout/sharding.h"
#include "cost_models/spec/split.h"
#include "tests/cost_models/layout/sample_models.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;

ParallelLayout layout_of(std::int64_t layers, int tp, int pp, int dp_shard = 1) {
  return {{.tp = tp, .pp = pp, .dp = dp_shard, .dp_shard = dp_shard},
          dp_shard > 1 ? 3 : 0,
          even_stages(layers, pp)};
}

TEST(Split, PartsCoverEveryUnitOnceAndNest) {
  for (const std::int64_t units : {1, 7, 28, 131}) {
    for (const std::int64_t parts : {1, 2, 3, 4, 8, 16}) {
      std::int64_t next = 0;
      for (std::int64_t i = 0; i < parts; ++i) {
        const Interval part = split(units, parts, i);
        EXPECT_EQ(part.lo, next);
        EXPECT_EQ(part.lo, split(units, 2 * parts, 2 * i).lo);
        EXPECT_LE(part.size(), units / parts + 1);
        next = part.hi;
      }
      EXPECT_EQ(next, units);
    }
  }
}

TEST(Box, SubtractionLeavesExactlyTheRest) {
  const std::vector<std::int64_t> shape{5, 4};
  Box a = whole(shape), b = whole(shape);
  a.dims = {Interval{0, 4}, Interval{1, 4}};
  b.dims = {Interval{1, 3}, Interval{0, 2}};
  const std::vector<Box> rest = subtract(a, b);
  for (std::int64_t i = 0; i < 5; ++i) {
    for (std::int64_t j = 0; j < 4; ++j) {
      const auto inside = [&](const Box& box) {
        return i >= box.dims[0].lo && i < box.dims[0].hi && j >= box.dims[1].lo &&
               j < box.dims[1].hi;
      };
      int covered = 0;
      for (const Box& box : rest) covered += inside(box);
      EXPECT_EQ(covered, inside(a) && !inside(b)) << i << ',' << j;
    }
  }
  EXPECT_THAT(subtract(a, a), ElementsAre());
  EXPECT_EQ(volume(intersect(a, b)), 2);
}

TEST(ParameterTable, FusedPartsAreConsecutiveRows) {
  const ParameterTable table = parameter_table(even_model(2));
  for (size_t i = 0; i < table.rows.size(); ++i) {
    if (table.rows[i].part == 0) continue;
    EXPECT_EQ(table.rows[i].storage, table.rows[i - 1].storage);
    EXPECT_EQ(table.rows[i].part, table.rows[i - 1].part + 1);
  }
}

TEST(ParameterTable, ATiedHeadIsTheEmbedding) {
  const ParameterTable table = parameter_table(odd_model());
  EXPECT_EQ(table.find("lm_head.weight"), std::nullopt);
  EXPECT_EQ(table.rows.front().place, StagePlace::embedding_and_head);
  const ParallelLayout layout = layout_of(3, 1, 3);
  EXPECT_TRUE(holds(table.rows.front(), layout, {.pp = 0}));
  EXPECT_FALSE(holds(table.rows.front(), layout, {.pp = 1}));
  EXPECT_TRUE(holds(table.rows.front(), layout, {.pp = 2}));
}

TEST(ParameterTable, AValueHeadReplacesTheProjection) {
  ModelSpec model = odd_model();
  model.head = ModelHead::value;
  const ParameterTable table = parameter_table(model);
  ASSERT_TRUE(table.find("score.weight"));
  EXPECT_THAT(table.rows.back().shape, ElementsAre(1, model.hidden));
  EXPECT_EQ(table.rows.front().place, StagePlace::embedding);
}

TEST(Sharding, TwentyEightHeadsAtTp8AreThreeOrFourEach) {
  ModelSpec model = even_model(1);
  model.query_heads = 28, model.kv_heads = 4, model.head_dim = 128;
  const ParameterTable table = parameter_table(model);
  const Parameter& q =
      table.rows[static_cast<size_t>(*table.find("model.layers.0.self_attn.q_proj.weight"))];
  const Parameter& k =
      table.rows[static_cast<size_t>(*table.find("model.layers.0.self_attn.k_proj.weight"))];
  const ParallelLayout layout = layout_of(1, 8, 1);
  std::vector<std::int64_t> queries, keys;
  for (int tp = 0; tp < 8; ++tp) {
    queries.push_back(compute_box(q, layout, {.tp = tp})->dims[0].size() / 128);
    keys.push_back(compute_box(k, layout, {.tp = tp})->dims[0].size() / 128);
  }
  EXPECT_THAT(queries, ElementsAre(3, 4, 3, 4, 3, 4, 3, 4));
  // Groups of 7 query heads share a KV head; no eighth crosses a multiple of 7.
  EXPECT_THAT(keys, ElementsAre(1, 1, 1, 1, 1, 1, 1, 1));
}

TEST(Sharding, KvHeadsAreSharedWhereTpExceedsThem) {
  ModelSpec model = even_model(1);
  model.kv_heads = 2;
  const ParameterTable table = parameter_table(model);
  const Parameter& v =
      table.rows[static_cast<size_t>(*table.find("model.layers.0.self_attn.v_proj.weight"))];
  const ParallelLayout layout = layout_of(1, 8, 1);
  for (int tp = 0; tp < 8; ++tp) {
    const std::int64_t first = tp < 4 ? 0 : 4;
    EXPECT_EQ(compute_box(v, layout, {.tp = tp})->dims[0], (Interval{first, first + 4}));
  }
}

TEST(Sharding, FsdpShardsCoverTheComputePartOnce) {
  const ParameterTable table = parameter_table(odd_model());
  for (const int tp : {1, 2}) {
    for (const int shards : {2, 3, 8}) {
      const ParallelLayout layout = layout_of(3, tp, 1, shards);
      for (const Parameter& row : table.rows) {
        for (int t = 0; t < tp; ++t) {
          const auto box = compute_box(row, layout, {.tp = t});
          ASSERT_TRUE(box);
          const auto dim = static_cast<size_t>(row.split_dim < 0 ? 0 : row.split_dim);
          std::int64_t next = box->dims[dim].lo;
          for (int s = 0; s < shards; ++s) {
            const auto part = stored_box(row, layout, {.tp = t, .dp_shard = s});
            if (!part) continue;
            EXPECT_EQ(part->dims[dim].lo, next) << row.name;
            next = part->dims[dim].hi;
          }
          EXPECT_EQ(next, box->dims[dim].hi) << row.name;
        }
      }
    }
  }
}

TEST(Sharding, UnevenStagesHoldTheirLayersAndEndsOnly) {
  const ParameterTable table = parameter_table(even_model(5));
  ParallelLayout layout = layout_of(5, 1, 2);
  layout.stages = {{0, 4}, {4, 5}};
  std::int64_t held = 0;
  for (int stage = 0; stage < 2; ++stage) {
    for (const Parameter& row : table.rows) {
      const bool expected = row.place == StagePlace::embedding ? stage == 0
                            : row.place == StagePlace::head    ? stage == 1
                                                               : (row.layer < 4) == (stage == 0);
      EXPECT_EQ(holds(row, layout, {.pp = stage}), expected) << row.name;
    }
    held += stored_elements(table, layout, {.pp = stage});
  }
  EXPECT_EQ(held, table.elements());
}

TEST(ParallelLayout, SaysEverythingThatIsImpossible) {
  Problems problems;
  ParallelLayout layout = layout_of(8, 2, 2);
  validate(layout, 8, 4, "plan.json", "/roles/actor/layout", problems);
  EXPECT_TRUE(problems.empty());
  layout.stages.pop_back();
  layout.dp = 3;
  layout.ep = 4;
  layout.zero = 7;
  validate(layout, 8, 4, "plan.json", "/roles/actor/layout", problems);
  std::vector<std::string> places;
  for (const Problem& problem : problems) places.push_back(problem.place);
  EXPECT_THAT(places, ElementsAre("/roles/actor/layout", "/roles/actor/layout/ep",
                                  "/roles/actor/layout/zero", "/roles/actor/layout/stages"));
}

TEST(ParallelLayout, StagesThatSkipALayerAreRefused) {
  Problems problems;
  ParallelLayout layout = layout_of(8, 1, 2);
  layout.stages = {{0, 3}, {4, 8}};
  validate(layout, 8, 2, "plan.json", "", problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems.front().place, "/stages/1");
}

}  // namespace
}  // namespace tessera
