// Gradients summed out of peers' memory: equal to the sum in the order of ranks, whatever fits into
// the staged copies, and nothing else is touched.
#include "executor/sharding/shard_reducer.h"

#include <gtest/gtest.h>

#include "executor/comm/thread_communicator.h"

namespace tessera {
namespace {

constexpr int kRanks = 3;
constexpr std::int64_t kFirst = 5;  // where the bucket begins in everybody's memory

/// Three rows of 10, 7 and 1 elements; ranks own uneven parts, one of them nothing of row 1.
ShardMap uneven_map(int rank) {
  ShardMap map{.kind = ShardKind::stored, .shards = kRanks, .rank = rank};
  ShardBucket bucket{.layer = 0, .rows = {0, 1, 2}, .place = {0, 12, 19}, .extent = 20};
  bucket.of_rank = {{{.row = 0, .first = 0, .count = 4, .shard = 1},
                     {.row = 1, .first = 0, .count = 5, .shard = 6}},
                    {{.row = 0, .first = 4, .count = 6, .shard = 0}},
                    {{.row = 1, .first = 5, .count = 2, .shard = 3},
                     {.row = 2, .first = 0, .count = 1, .shard = 0}}};
  map.elements = 11;
  map.buckets = {bucket};
  return map;
}

torch::Tensor gradients_of(int rank, int step) {
  return torch::sin(torch::arange(20, torch::kFloat) * (rank + 1) + step) * 1e3;
}

void sums_with_room_for(std::int64_t staged) {
  run_ranks(kRanks, [&](Communicator& world) {
    const ShardMap map = uneven_map(world.rank());
    const ShardBucket& bucket = map.buckets[0];
    auto shared = make_peer_memory(world, kFirst + bucket.extent + 3, torch::kFloat);
    ASSERT_NE(shared, nullptr);
    ShardReducer reducer(std::move(shared), staged);
    const torch::Tensor memory = reducer.own().narrow(0, kFirst, bucket.extent);
    torch::Tensor shards = torch::full({map.elements}, 0.5F), want = shards.clone();
    for (int step = 0; step < 3; ++step) {
      memory.copy_(gradients_of(world.rank(), step));
      reducer.reduce(map, bucket, memory, shards, step > 0);
      for (const ShardSegment& segment : map.own(bucket)) {
        const std::int64_t at = bucket.place[static_cast<std::size_t>(segment.row)] + segment.first;
        torch::Tensor sum = gradients_of(0, step).narrow(0, at, segment.count).clone();
        for (int rank = 1; rank < kRanks; ++rank) {
          sum += gradients_of(rank, step).narrow(0, at, segment.count);
        }
        torch::Tensor part = want.narrow(0, segment.shard, segment.count);
        part.copy_(step > 0 ? part + sum : sum);
      }
      EXPECT_TRUE(torch::equal(shards, want)) << "step " << step;
      memory.fill_(NAN);  // everybody has read it
    }
  });
}

TEST(ShardReducer, SumsEveryRanksGradientsOfItsOwnElements) {
  sums_with_room_for(ShardReducer::kStagedElements);
}

TEST(ShardReducer, TakesSeveralRoundsWhereTheCopiesDoNotFit) { sums_with_room_for(8); }

TEST(ShardReducer, RefusesGradientsThatPeersCannotRead) {
  run_ranks(1, [&](Communicator& world) {
    ShardMap map = uneven_map(0);
    ShardReducer reducer(make_peer_memory(world, 20, torch::kFloat));
    torch::Tensor shards = torch::zeros({map.elements});
    EXPECT_THROW(reducer.reduce(map, map.buckets[0], torch::zeros({20}), shards, false),
                 c10::Error);
  });
}

}  // namespace
}  // namespace tessera
