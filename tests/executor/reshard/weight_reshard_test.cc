// Reshards on ranks that are threads and read one another's memory, or send messages.
#include "executor/reshard/weight_reshard.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <thread>

#include "cost_models/documents/problem.h"
#include "executor/comm/thread_communicator.h"
#include "executor/transfers/gathers.h"
#include "tests/executor/reshard/reshard_cases.h"

namespace tessera {
namespace {

using reshard_cases::Rig;

TEST(WeightReshard, DeliversEveryPairOfLayoutsThroughSharedMemory) {
  run_ranks(4, [](Communicator& world) {
    reshard_cases::delivers_every_pair(world, {.transport = ReshardTransport::host});
  });
}

TEST(WeightReshard, DeliversEveryPairOfLayoutsByMessages) {
  run_ranks(4, [](Communicator& world) {
    reshard_cases::delivers_every_pair(world, {.transport = ReshardTransport::send_recv});
  });
}

TEST(WeightReshard, DeliversEveryPairOfLayoutsByAllGathersAndMessages) {
  run_ranks(4, [](Communicator& world) {
    reshard_cases::delivers_every_pair(world, {.transport = ReshardTransport::all_gather});
  });
}

TEST(WeightReshard, DeliversExpertsBetweenEveryPairOfLayoutsWithTheFewestBytes) {
  for (const ReshardTransport transport : {ReshardTransport::host, ReshardTransport::send_recv}) {
    run_ranks(4, [&](Communicator& world) {
      reshard_cases::delivers_experts(world, {.transport = transport});
    });
  }
}

TEST(WeightReshard, LargeMessagesAndGathersByThemselvesChangeNothing) {
  run_ranks(4, [](Communicator& world) {
    for (const ReshardTransport transport :
         {ReshardTransport::send_recv, ReshardTransport::all_gather}) {
      for (const std::int64_t merge_below : {std::int64_t{0}, std::int64_t{300}}) {
        reshard_cases::delivers_every_pair(world, {.transport = transport,
                                                   .bucket_bytes = 700,
                                                   .merge_below = merge_below,
                                                   .verify = true});
      }
    }
  });
}

/// Every way is taken once, all of them deliver, and ranks agree on what stays.
TEST(WeightReshard, TheFirstReshardTriesEveryTransportAndTheFastestStays) {
  const ModelSpec model = even_model(4);
  const ParameterTable table = parameter_table(model);
  std::array<ReshardTransport, 4> chosen{};
  run_ranks(4, [&](Communicator& world) {
    const RankMap training = contiguous(layout_of(4, 1, 1, model.layers));
    Rig rig(world, table, training, strided(layout_of(2, 1, 2, model.layers), training), {});
    EXPECT_EQ(rig.weight_reshard->transport(), ReshardTransport::automatic);
    const ReshardReport first = rig.weight_reshard->run();
    ASSERT_EQ(first.tried.size(), 3u);
    const auto fastest =
        std::min_element(first.tried.begin(), first.tried.end(),
                         [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
    EXPECT_EQ(first.transport, fastest->transport);
    EXPECT_NE(to_string(first).find("chosen among"), std::string::npos);
    EXPECT_TRUE(rig.landed == rig.expected);
    std::fill(rig.landed.begin(), rig.landed.end(), std::byte{});
    const ReshardReport second = rig.weight_reshard->run();
    EXPECT_TRUE(second.tried.empty());
    EXPECT_EQ(second.transport, first.transport);
    EXPECT_TRUE(rig.landed == rig.expected);
    chosen[static_cast<std::size_t>(world.rank())] = second.transport;
  });
  for (const ReshardTransport each : chosen) EXPECT_EQ(each, chosen[0]);
}

TEST(WeightReshard, AllGathersDoEverythingWhereBlocksAreEqualAndCompleteAndNothingAcrossStages) {
  const ModelSpec model = even_model(4);
  const ParameterTable table = parameter_table(model);
  const auto covered = [&](const ParallelLayout& from, const ParallelLayout& to) {
    const RankMap training = contiguous(from);
    const Reshard reshard(table, training, strided(to, training), DType::fp32, ReshardMode::minimal,
                          1);
    const PlacedReshard plan = reshard.placed();
    const GatherSchedule found = find_gathers(
        plan.plan, plan.tensors, 1, [&](int t, const Box& box) { return plan.source(1, t, box); },
        plan.destination);
    int moved = 0, gathered = 0;
    for (std::size_t i = 0; i < plan.plan.transfers.size(); ++i) {
      if (plan.plan.transfers[i].source == plan.plan.transfers[i].destination) continue;
      ++moved;
      gathered += found.covered[i];
    }
    return std::pair(moved, gathered);
  };
  const auto nested = covered(layout_of(4, 1, 1, model.layers), layout_of(2, 1, 2, model.layers));
  EXPECT_GT(nested.first, 0);
  EXPECT_EQ(nested.first, nested.second);
  EXPECT_EQ(covered(layout_of(1, 4, 1, model.layers), layout_of(1, 1, 4, model.layers)).second, 0);
}

TEST(WeightReshard, BucketsChecksumsAndTheChoiceOfTransportChangeNothing) {
  run_ranks(4, [](Communicator& world) {
    reshard_cases::delivers_every_pair(world, {.bucket_bytes = 3000, .verify = true});
  });
}

TEST(WeightReshard, MessagesInRoundsOfBoundedStagesChangeNothing) {
  run_ranks(4, [](Communicator& world) {
    reshard_cases::delivers_every_pair(
        world, {.transport = ReshardTransport::send_recv, .bucket_bytes = 700, .verify = true});
  });
}

TEST(WeightReshard, TheOrderOfReadsChangesNothing) {
  run_ranks(4, [](Communicator& world) {
    reshard_cases::delivers_every_pair(
        world, {.transport = ReshardTransport::host, .pulls = PullOrder::in_steps});
    reshard_cases::delivers_every_pair(world, {.transport = ReshardTransport::host,
                                               .copy_bytes = 100,
                                               .verify = true,
                                               .pulls = PullOrder::in_steps});
    reshard_cases::delivers_every_pair(world, {.transport = ReshardTransport::host,
                                               .copy_bytes = 100,
                                               .pulls = PullOrder::in_steps,
                                               .overlap = true});
  });
}

TEST(WeightReshard, OverlapsWithTheOptimizerWithoutStaleWeights) {
  run_ranks(4, [](Communicator& world) { reshard_cases::overlaps_without_stale_weights(world); });
}

/// As a trainer tells it: rows of a layer at once, some ranks nothing, and a step that is not
/// applied names none.
TEST(WeightReshard, TensorsNamedAsWrittenLeaveInAnyOrder) {
  const ModelSpec model = even_model(4);
  const ParameterTable table = parameter_table(model);
  run_ranks(4, [&](Communicator& world) {
    Rig rig(world, table, contiguous(layout_of(1, 2, 1, model.layers)),
            contiguous(layout_of(2, 1, 1, model.layers), 2),
            {.pulls = PullOrder::in_steps, .overlap = true});
    for (int turn = 0; turn < 4; ++turn) {
      std::fill(rig.landed.begin(), rig.landed.end(), std::byte{});
      rig.weight_reshard->begin();
      EXPECT_TRUE(rig.weight_reshard->begun());
      if (rig.reshard.source() != nullptr && turn < 3) {
        std::vector<int> rows;
        for (const ArenaSlot& slot : rig.reshard.source()->slots) rows.push_back(slot.tensor);
        if (turn == 1) std::reverse(rows.begin(), rows.end());
        const std::size_t half = turn == 2 ? rows.size() : rows.size() / 2;
        rig.weight_reshard->written(std::span(rows).first(half));
        rig.weight_reshard->written(std::span(rows).subspan(half));
      }
      rig.weight_reshard->finish();
      EXPECT_FALSE(rig.weight_reshard->begun());
      EXPECT_TRUE(rig.landed == rig.expected) << "rank " << world.rank() << " turn " << turn;
      world.barrier();
    }
  });
}

TEST(WeightReshard, MovesOnlyWhatChanged) {
  for (const ReshardTransport transport : {ReshardTransport::host, ReshardTransport::send_recv}) {
    run_ranks(
        4, [&](Communicator& world) { reshard_cases::moves_only_what_changed(world, transport); });
  }
}

/// One element of a large tensor changed: a few rows travel, not the tensor.
TEST(WeightReshard, MovesOnlyThePiecesThatChanged) {
  const ModelSpec model = even_model(4);
  const ParameterTable table = parameter_table(model);
  const int embedding = *table.find("model.embed_tokens.weight");
  const std::int64_t row = table.rows[static_cast<std::size_t>(embedding)].shape[1] * 4;
  run_ranks(4, [&](Communicator& world) {
    Rig rig(world, table, contiguous(layout_of(4, 1, 1, model.layers)),
            contiguous(layout_of(1, 1, 4, model.layers)),
            {.transport = ReshardTransport::host,
             .incremental = true,
             .piece_bytes = 2 * row,
             .verify = true});
    rig.weight_reshard->run();
    ASSERT_TRUE(rig.landed == rig.expected);
    const ArenaSlot& slot = rig.reshard.source()->slots[static_cast<std::size_t>(
        rig.reshard.source()->slot_of[static_cast<std::size_t>(embedding)])];
    if (world.rank() == 1) rig.source()[slot.range.offset / 4] = 31;
    const ReshardReport report = rig.weight_reshard->run();
    EXPECT_GT(report.busiest, 0);
    EXPECT_LE(report.busiest, 2 * row);
    const ByteRange place =
        range_of(*rig.reshard.destination(), embedding,
                 restricted(whole(table.rows[static_cast<std::size_t>(embedding)].shape), 0,
                            {slot.box.dims[0].size(), slot.box.dims[0].size() + 1}));
    const std::int32_t changed = 31;
    std::memcpy(rig.expected.data() + place.offset, &changed, 4);
    EXPECT_TRUE(rig.landed == rig.expected) << "rank " << world.rank();
  });
}

/// Training, rollout, training ... : what a run does, long enough for an error to add up.
TEST(WeightReshard, AHundredReshardsInARowLeaveEveryByteAsItWas) {
  const ModelSpec model = odd_model(4);
  const ParameterTable table = parameter_table(model);
  for (const WeightReshardOptions& options :
       {WeightReshardOptions{.transport = ReshardTransport::host},
        WeightReshardOptions{.transport = ReshardTransport::send_recv, .verify = true},
        WeightReshardOptions{.transport = ReshardTransport::host, .bucket_bytes = 2000}}) {
    run_ranks(4, [&](Communicator& world) {
      Rig rig(world, table, contiguous(layout_of(2, 2, 1, model.layers)),
              contiguous(layout_of(2, 1, 2, model.layers)), options);
      const std::vector<std::byte> before(
          static_cast<const std::byte*>(rig.block->data()),
          static_cast<const std::byte*>(rig.block->data()) + rig.block->bytes());
      for (int turn = 0; turn < 100; ++turn) {
        std::fill(rig.landed.begin(), rig.landed.end(), std::byte{0xEE});
        rig.weight_reshard->run();
        for (const ArenaSlot& slot : rig.reshard.destination()->slots) {
          ASSERT_EQ(std::memcmp(rig.landed.data() + slot.range.offset,
                                rig.expected.data() + slot.range.offset,
                                static_cast<std::size_t>(slot.range.bytes)),
                    0)
              << "turn " << turn;
        }
      }
      EXPECT_EQ(std::memcmp(before.data(), rig.block->data(), before.size()), 0);
    });
  }
}

TEST(WeightReshard, DeliversBetweenDisjointRanks) {
  const ModelSpec model = odd_model(3);
  const ParameterTable table = parameter_table(model);
  run_ranks(4, [&](Communicator& world) {
    Rig rig(world, table, contiguous(layout_of(2, 1, 1, model.layers)),
            contiguous(layout_of(1, 1, 2, model.layers), 2), {.transport = ReshardTransport::host});
    rig.weight_reshard->run();
    EXPECT_TRUE(rig.landed == rig.expected);
  });
}

TEST(WeightReshard, NestedLayoutsShareOneMemoryAndTheWayBackMovesNothing) {
  const ModelSpec model = even_model(4);
  const ParameterTable table = parameter_table(model);
  const RankMap from = contiguous(layout_of(4, 1, 1, model.layers));
  const RankMap to = strided(layout_of(2, 1, 2, model.layers), from);
  run_ranks(4, [&](Communicator& world) {
    const Reshard reshard(table, from, to, DType::fp32, ReshardMode::minimal, world.rank());
    const auto arena_on = [&](int rank) {
      const auto index = static_cast<std::size_t>(rank);
      return shared_arena(arena_layout(table, from.layout, from.coords[index], DType::fp32, true),
                          arena_layout(table, to.layout, to.coords[index], DType::fp32));
    };
    const SharedArena arena = arena_on(world.rank());
    EXPECT_EQ(arena.held_twice, 0);
    EXPECT_EQ(arena.bytes, reshard.destination()->bytes);
    const auto block = make_host_block(arena.bytes);
    auto* memory = static_cast<std::byte*>(block->data());
    const auto write_training = [&](const std::vector<std::byte>& compact) {
      for (std::size_t i = 0; i < arena.training.slots.size(); ++i) {
        const ByteRange own = reshard.source()->slots[i].range;
        std::memcpy(memory + arena.training.slots[i].range.offset, compact.data() + own.offset,
                    static_cast<std::size_t>(own.bytes));
      }
    };
    write_training(expected_arena(table, *reshard.source()));
    const auto copies = make_host_copies();
    WeightReshard weight_reshard(
        reshard.placed([&](int rank) { return arena_on(rank).training; }, arena.rollout),
        {.world = &world,
         .host = &world,
         .block = block.get(),
         .source = memory,
         .destination = memory,
         .copies = copies.get()},
        {.transport = ReshardTransport::host});
    const ReshardReport report = weight_reshard.run();
    EXPECT_EQ(report.received, reshard.plan().traffic[world.rank()].received);
    EXPECT_EQ(weight_reshard.buffer_bytes(), 0);
    const std::vector<std::byte> expected = expected_arena(table, *reshard.destination());
    EXPECT_EQ(std::memcmp(memory, expected.data(), expected.size()), 0);
  });
}

TEST(WeightReshard, ACorruptedByteIsFoundAndNamed) {
  const ModelSpec model = even_model(2);
  const ParameterTable table = parameter_table(model);
  // Rank 0 writes to its source while others read: what lands differs from what was summed.
  class Corrupting final : public BlockCopies {
   public:
    explicit Corrupting(int rank) : rank_(rank), inner_(make_host_copies()) {}
    void await_producer() override {}
    int mark_producer() override { return 0; }
    void await_mark(int) override {}
    void start(std::span<const CopyBatch> batches) override {
      inner_->start(batches);
      if (rank_ == 1) *static_cast<char*>(batches[0].to[0]) ^= 1;
    }
    void wait() override {}

   private:
    int rank_;
    std::unique_ptr<BlockCopies> inner_;
  };
  std::string said;
  EXPECT_THROW(run_ranks(2,
                         [&](Communicator& world) {
                           Rig rig(world, table, contiguous(layout_of(2, 1, 1, 2)),
                                   contiguous(layout_of(1, 1, 2, 2)), {});
                           Corrupting copies(world.rank());
                           WeightReshard weight_reshard(
                               rig.reshard.placed(),
                               {.world = &world,
                                .host = &world,
                                .block = rig.block.get(),
                                .source = rig.block->data(),
                                .destination = rig.landed.data(),
                                .copies = &copies},
                               {.transport = ReshardTransport::host, .verify = true});
                           try {
                             weight_reshard.run();
                           } catch (const Error& error) {
                             said = error.what();
                             throw;
                           }
                           world.barrier();
                         }),
               std::exception);
  EXPECT_NE(said.find("from rank 0 has another checksum on rank 1"), std::string::npos) << said;
}

TEST(WeightReshard, HooksAndTheLogLineTellTheTransport) {
  const ModelSpec model = even_model(2);
  const ParameterTable table = parameter_table(model);
  run_ranks(2, [&](Communicator& world) {
    Rig rig(world, table, contiguous(layout_of(2, 1, 1, 2)), contiguous(layout_of(1, 1, 2, 2)),
            {.transport = ReshardTransport::host});
    std::vector<std::string> seen;
    rig.weight_reshard->run(
        {.on_start = [&] { seen.emplace_back("start"); },
         .on_end = [&](const ReshardReport& report) { seen.push_back(to_string(report)); }});
    ASSERT_EQ(seen.size(), 2u);
    EXPECT_EQ(seen[0], "start");
    EXPECT_NE(seen[1].find("ms by host"), std::string::npos);
  });
}

}  // namespace
}  // namespace tessera
