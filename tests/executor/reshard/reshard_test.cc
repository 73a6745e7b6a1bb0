// Whole reshards between layouts on ranks that are threads: every byte of every rank is compared
// with the full model.
#include "executor/reshard/reshard.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "executor/comm/thread_communicator.h"
#include "tests/cost_models/layout/sample_models.h"
#include "tests/executor/reshard/layout_cases.h"

namespace tessera {
namespace {

/// Runs the reshard on `world` ranks and compares every destination arena with the full model.
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
