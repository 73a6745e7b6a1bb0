// Whole switches between layouts on ranks that are threads: every byte of every rank is compared
// with the full model.
#include "executor/reshard/reshard.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "executor/comm/thread_communicator.h"
#include "tests/cost_models/sample_models.h"

namespace tessera {
namespace {

/// A value that no other element of the model has, so that a misplaced element is seen.
std::int32_t fingerprint(int tensor, std::int64_t element) {
  return static_cast<std::int32_t>(tensor * 100003 + element + 1);
}

/// What an arena of this layout holds: fingerprints in memory order, zeros between slots.
std::vector<std::byte> expected_arena(const ParameterTable& table, const ArenaLayout& arena) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(arena.bytes));
  for (const ArenaSlot& slot : arena.slots) {
    const std::vector<std::int64_t>& shape = table.rows[slot.tensor].shape;
    auto* out = reinterpret_cast<std::int32_t*>(bytes.data() + slot.range.offset);
    const bool matrix = shape.size() == 2;
    const int inner_dim = slot.outer_dim == 0 ? 1 : 0;
    const Interval outer = slot.box.dims[slot.outer_dim];
    const Interval inner = matrix ? slot.box.dims[inner_dim] : Interval{0, 1};
    for (std::int64_t o = outer.lo; o < outer.hi; ++o) {
      for (std::int64_t i = inner.lo; i < inner.hi; ++i) {
        const std::int64_t row = slot.outer_dim == 0 ? o : i;
        const std::int64_t column = slot.outer_dim == 0 ? i : o;
        *out++ = fingerprint(slot.tensor, matrix ? row * shape[1] + column : o);
      }
    }
  }
  return bytes;
}

RankMap contiguous(const ParallelLayout& layout, int first_rank = 0) {
  std::vector<int> ranks(layout.ranks());
  std::iota(ranks.begin(), ranks.end(), first_rank);
  Problems problems;
  RankMap map = make_rank_map(RankOrder::contiguous, layout, ranks, nullptr, "test", problems);
  EXPECT_TRUE(problems.empty());
  return map;
}

RankMap strided(const ParallelLayout& layout, const RankMap& training) {
  Problems problems;
  RankMap map =
      make_rank_map(RankOrder::strided, layout, training.ranks, &training, "test", problems);
  EXPECT_TRUE(problems.empty());
  return map;
}

ParallelLayout layout_of(int tp, int pp, int dp, std::int64_t layers, int dp_shard = 1) {
  ParallelLayout layout;
  layout.tp = tp;
  layout.pp = pp;
  layout.dp_replicate = dp;
  layout.dp_shard = dp_shard;
  layout.zero = dp_shard > 1 ? 3 : 0;
  layout.stages = even_stages(layers, pp);
  return layout;
}

/// Runs the switch on `world` ranks and compares every destination arena with the full model.
void expect_exact(const ParameterTable& table, const RankMap& from, const RankMap& to,
                  ReshardMode mode, int world) {
  SCOPED_TRACE(describe(from.layout) + " -> " + describe(to.layout));
  run_ranks(world, [&](Communicator& ranks) {
    const int rank = ranks.rank();
    const Reshard reshard(table, from, to, DType::fp32, mode, rank);
    std::vector<std::byte> source, destination, staging(reshard.staging_bytes());
    if (reshard.source() != nullptr) source = expected_arena(table, *reshard.source());
    if (reshard.destination() != nullptr) destination.resize(reshard.destination()->bytes);
    const ReshardReport report =
        reshard.run(ranks, source.data(), destination.data(), staging.data());
    if (reshard.destination() != nullptr) {
      EXPECT_TRUE(destination == expected_arena(table, *reshard.destination())) << "rank " << rank;
      EXPECT_EQ(report.received, reshard.plan().traffic[rank].received);
    }
    if (mode == ReshardMode::minimal) {
      EXPECT_EQ(report.busiest, report.lower_bound);
    } else {
      EXPECT_GE(report.busiest, report.lower_bound);
    }
  });
}

std::vector<ParallelLayout> four_rank_layouts(std::int64_t layers) {
  std::vector<ParallelLayout> layouts;
  for (const int tp : {1, 2, 4}) {
    for (const int pp : {1, 2, 4}) {
      if (4 % (tp * pp) == 0) layouts.push_back(layout_of(tp, pp, 4 / (tp * pp), layers));
    }
  }
  return layouts;
}

TEST(Reshard, DeliversEveryPairOfLayoutsOnFourRanksBitForBit) {
  for (const ModelSpec& model : {even_model(4), odd_model(5)}) {
    const ParameterTable table = parameter_table(model);
    for (const ParallelLayout& from : four_rank_layouts(model.layers)) {
      for (const ParallelLayout& to : four_rank_layouts(model.layers)) {
        expect_exact(table, contiguous(from), contiguous(to), ReshardMode::minimal, 4);
      }
    }
  }
}

TEST(Reshard, DeliversFromFsdpAndHybridShardedStorage) {
  const ModelSpec model = odd_model(3);
  const ParameterTable table = parameter_table(model);
  for (const ParallelLayout& from :
       {layout_of(1, 1, 1, model.layers, 4), layout_of(1, 1, 2, model.layers, 2),
        layout_of(2, 1, 1, model.layers, 2), layout_of(1, 2, 1, model.layers, 2)}) {
    for (const ParallelLayout& to : four_rank_layouts(model.layers)) {
      expect_exact(table, contiguous(from), contiguous(to), ReshardMode::minimal, 4);
    }
  }
}

TEST(Reshard, StridedGenerationGroupsReceiveTheLeast) {
  const ModelSpec model = even_model(4);
  const ParameterTable table = parameter_table(model);
  const RankMap training = contiguous(layout_of(2, 2, 1, model.layers));
  expect_exact(table, training, strided(layout_of(2, 1, 2, model.layers), training),
               ReshardMode::minimal, 4);
}

TEST(Reshard, GatheringWholeTensorsGivesTheSameWeights) {
  const ModelSpec model = odd_model(5);
  const ParameterTable table = parameter_table(model);
  expect_exact(table, contiguous(layout_of(2, 2, 1, model.layers)),
               contiguous(layout_of(2, 1, 2, model.layers)), ReshardMode::full, 4);
}

TEST(Reshard, DeliversBetweenDisjointRanks) {
  const ModelSpec model = odd_model(3);
  const ParameterTable table = parameter_table(model);
  for (const ReshardMode mode : {ReshardMode::minimal, ReshardMode::full}) {
    expect_exact(table, contiguous(layout_of(2, 1, 1, model.layers)),
                 contiguous(layout_of(1, 1, 2, model.layers), 2), mode, 4);
  }
}

TEST(Reshard, HooksSeeTheStartAndTheReport) {
  const ParameterTable table = parameter_table(even_model(2));
  const RankMap from = contiguous(layout_of(2, 1, 1, 2)), to = contiguous(layout_of(1, 1, 2, 2));
  run_ranks(2, [&](Communicator& world) {
    const Reshard reshard(table, from, to, DType::fp32, ReshardMode::minimal, world.rank());
    std::vector<std::byte> source(reshard.source()->bytes);
    std::vector<std::byte> destination(reshard.destination()->bytes);
    std::vector<std::string> seen;
    reshard.run(
        world, source.data(), destination.data(), nullptr,
        {.on_start = [&] { seen.emplace_back("start"); },
         .on_end = [&](const ReshardReport& report) { seen.push_back(to_string(report)); }});
    ASSERT_EQ(seen.size(), 2u);
    EXPECT_EQ(seen[0], "start");
    EXPECT_NE(seen[1].find("received by the busiest rank (lower bound"), std::string::npos);
  });
}

}  // namespace
}  // namespace tessera
