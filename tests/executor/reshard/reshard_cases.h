// Whole reshards by WeightReshard on four ranks, whatever the ranks are: every byte of every rank
// is compared with the full model. The caller runs these on each rank of a world.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "executor/reshard/reshard.h"
#include "executor/reshard/weight_reshard.h"
#include "executor/storage/block_copies.h"
#include "executor/storage/shared_block.h"
#include "tests/cost_models/layout/sample_models.h"
#include "tests/executor/reshard/layout_cases.h"

namespace tessera::reshard_cases {

/// One rank's side of a reshard, with memory that its peers can map.
struct Rig {
  Rig(Communicator& world, const ParameterTable& table, const RankMap& from, const RankMap& to,
      const WeightReshardOptions& options)
      : reshard(table, from, to, DType::fp32, ReshardMode::minimal, world.rank()),
        block(make_host_block(reshard.source() != nullptr ? reshard.source()->bytes : 0)),
        copies(make_host_copies()) {
    if (reshard.source() != nullptr) fill(expected_arena(table, *reshard.source()));
    if (reshard.destination() != nullptr) {
      landed.resize(static_cast<std::size_t>(reshard.destination()->bytes));
      expected = expected_arena(table, *reshard.destination());
    }
    weight_reshard = std::make_unique<WeightReshard>(reshard.placed(),
                                                     ReshardSite{.world = &world,
                                                                 .host = &world,
                                                                 .block = block.get(),
                                                                 .source = block->data(),
                                                                 .destination = landed.data(),
                                                                 .copies = copies.get()},
                                                     options);
  }

  void fill(const std::vector<std::byte>& bytes) {
    std::memcpy(block->data(), bytes.data(), bytes.size());
  }
  std::int32_t* source() { return static_cast<std::int32_t*>(block->data()); }
  std::size_t source_elements() const { return static_cast<std::size_t>(block->bytes() / 4); }
  std::int32_t* destination() { return reinterpret_cast<std::int32_t*>(landed.data()); }

  Reshard reshard;
  std::unique_ptr<SharedBlock> block;
  std::unique_ptr<BlockCopies> copies;
  std::vector<std::byte> landed, expected;
  std::unique_ptr<WeightReshard> weight_reshard;
};

inline std::vector<ParallelLayout> sources(std::int64_t layers) {
  std::vector<ParallelLayout> layouts = four_rank_layouts(layers);
  layouts.push_back(layout_of(1, 1, 1, layers, 4));  // FSDP
  layouts.push_back(layout_of(1, 1, 2, layers, 2));  // HSDP
  layouts.push_back(layout_of(2, 1, 1, layers, 2));  // TP x FSDP
  layouts.push_back(layout_of(1, 2, 1, layers, 2));  // PP x FSDP
  return layouts;
}

/// Runs on one rank of a world of four.
inline void delivers_every_pair(Communicator& world, const WeightReshardOptions& options) {
  const ModelSpec model = odd_model(5);
  const ParameterTable table = parameter_table(model);
  for (const ParallelLayout& from : sources(model.layers)) {
    for (const ParallelLayout& to : four_rank_layouts(model.layers)) {
      SCOPED_TRACE(describe(from) + " -> " + describe(to));
      Rig rig(world, table, contiguous(from), contiguous(to), options);
      for (int turn = 0; turn < 2; ++turn) {
        std::fill(rig.landed.begin(), rig.landed.end(), std::byte{});
        const ReshardReport report = rig.weight_reshard->run();
        EXPECT_TRUE(rig.landed == rig.expected) << "rank " << world.rank() << " turn " << turn;
        EXPECT_EQ(report.busiest, report.lower_bound);
      }
    }
  }
}

/// The same of experts, between every two layouts of which the second stores whole tensors.
inline void delivers_experts(Communicator& world, const WeightReshardOptions& options) {
  const ModelSpec model = expert_model();
  const ParameterTable table = parameter_table(model);
  const std::vector<ParallelLayout> layouts = four_rank_expert_layouts(model.layers);
  for (const ParallelLayout& from : layouts) {
    for (const ParallelLayout& to : layouts) {
      if (to.dp_shard > 1) continue;
      SCOPED_TRACE(describe(from) + " -> " + describe(to));
      Rig rig(world, table, contiguous(from), contiguous(to), options);
      const ReshardReport report = rig.weight_reshard->run();
      EXPECT_TRUE(rig.landed == rig.expected) << "rank " << world.rank();
      EXPECT_EQ(report.busiest, report.lower_bound);
    }
  }
}

/// The optimizer writes bucket after bucket, late; nobody may see what was there before.
inline void overlaps_without_stale_weights(Communicator& world, const WeightReshardOptions& options,
                                           const ParallelLayout& from, const ParallelLayout& to) {
  const ModelSpec model = even_model(4);  // its embedding is cut over several buckets
  const ParameterTable table = parameter_table(model);
  Rig rig(world, table, contiguous(from), contiguous(to), options);
  ASSERT_GT(rig.weight_reshard->buckets(), 5);
  const ArenaLayout& arena = *rig.reshard.source();
  for (int turn = 1; turn <= 3; ++turn) {
    std::vector<std::int32_t> wanted(rig.expected.size() / 4);
    std::memcpy(wanted.data(), rig.expected.data(), rig.expected.size());
    for (std::int32_t& value : wanted) value = value == 0 ? 0 : value + turn * 7919;
    const std::vector<std::byte> fresh = expected_arena(table, arena);
    std::vector<bool> written(arena.slots.size());
    rig.weight_reshard->begin();
    for (int bucket = 0; bucket < rig.weight_reshard->buckets(); ++bucket) {
      for (std::size_t slot = 0; slot < arena.slots.size(); ++slot) {
        const int first = rig.weight_reshard->first_bucket_of(arena.slots[slot].tensor);
        if (written[slot] || first > bucket) continue;
        written[slot] = true;
        const ByteRange range = arena.slots[slot].range;
        for (std::int64_t i = range.offset / 4; i < (range.offset + range.bytes) / 4; ++i) {
          std::int32_t value = 0;
          std::memcpy(&value, fresh.data() + 4 * i, 4);
          rig.source()[i] = value + turn * 7919;
        }
      }
      rig.weight_reshard->ready(bucket);
    }
    const ReshardReport report = rig.weight_reshard->finish();
    EXPECT_LE(report.exposed_s, report.seconds);
    EXPECT_EQ(std::memcmp(wanted.data(), rig.landed.data(), rig.landed.size()), 0)
        << "rank " << world.rank() << " turn " << turn << ", " << describe(from) << " -> "
        << describe(to);
    world.barrier();
  }
}

/// Buckets by size and in proportion, reads together and in steps, sources that hold all layers and
/// sources that hold some.
inline void overlaps_without_stale_weights(Communicator& world) {
  const std::int64_t layers = 4;
  for (const WeightReshardOptions& options :
       {WeightReshardOptions{.bucket_bytes = 700}, WeightReshardOptions{.overlap = true},
        WeightReshardOptions{.pulls = PullOrder::in_steps, .overlap = true},
        WeightReshardOptions{.bucket_bytes = 700, .pulls = PullOrder::in_steps}}) {
    overlaps_without_stale_weights(world, options, layout_of(2, 2, 1, layers),
                                   layout_of(2, 1, 2, layers));
    overlaps_without_stale_weights(world, options, layout_of(1, 4, 1, layers),
                                   layout_of(1, 1, 4, layers));
  }
}

/// Only tensors that some rank wrote to travel again.
inline void moves_only_what_changed(Communicator& world, ReshardTransport transport) {
  const ModelSpec model = even_model(4);
  const ParameterTable table = parameter_table(model);
  Rig rig(world, table, contiguous(layout_of(4, 1, 1, model.layers)),
          contiguous(layout_of(1, 1, 4, model.layers)),
          {.transport = transport, .incremental = true, .verify = true});
  ReshardReport report = rig.weight_reshard->run();
  EXPECT_EQ(report.received, rig.reshard.plan().lower_bound.value);
  EXPECT_TRUE(rig.landed == rig.expected);
  EXPECT_TRUE(report.verified);
  report = rig.weight_reshard->run();
  EXPECT_EQ(report.received, 0);
  // Rank 2 alone changes its part of one tensor.
  const int changed = *table.find("model.layers.1.mlp.up_proj.weight");
  const ArenaSlot& slot = rig.reshard.source()->slots[static_cast<std::size_t>(
      rig.reshard.source()->slot_of[static_cast<std::size_t>(changed)])];
  if (world.rank() == 2) rig.source()[slot.range.offset / 4] += 1;
  report = rig.weight_reshard->run();
  EXPECT_EQ(report.received, world.rank() == 2 ? 0 : slot.range.bytes);
  EXPECT_EQ(report.busiest, slot.range.bytes);
  const ByteRange place =
      range_of(*rig.reshard.destination(), changed,
               restricted(whole(table.rows[static_cast<std::size_t>(changed)].shape), 0,
                          {32, 48}));  // the third quarter of 64 rows
  rig.expected[static_cast<std::size_t>(place.offset)] = static_cast<std::byte>(
      static_cast<unsigned char>(rig.expected[static_cast<std::size_t>(place.offset)]) + 1);
  EXPECT_TRUE(rig.landed == rig.expected) << "rank " << world.rank();
}

}  // namespace tessera::reshard_cases
