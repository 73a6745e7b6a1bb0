#include "executor/comm/groups.h"

#include <gmock/gmock.h>

#include <map>
#include <mutex>

#include "executor/comm/thread_communicator.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using Ranks = std::vector<int>;

/// tp fastest, then cp, dp_shard, dp_replicate, pp: Megatron's order, on `ranks`.
RankMap map_of(const ParallelLayout& layout, Ranks ranks) {
  RankMap map{layout, std::move(ranks), {}};
  for (int i = 0; i < layout.ranks(); ++i) {
    RankCoord c;
    int rest = i;
    c.tp = rest % layout.tp, rest /= layout.tp;
    c.cp = rest % layout.cp, rest /= layout.cp;
    c.dp_shard = rest % layout.dp_shard, rest /= layout.dp_shard;
    c.dp_replicate = rest % layout.dp_replicate(), rest /= layout.dp_replicate();
    c.pp = rest;
    map.coords.push_back(c);
  }
  return map;
}

/// World ranks of a group in its order, as the group itself reports them.
Ranks members_of(Communicator* group, int me) {
  if (group == nullptr) return {};
  Ranks ranks(static_cast<std::size_t>(group->size()));
  group->all_gather(&me, ranks.data(), 1, DType::int32);
  return ranks;
}

/// rank -> group name -> members.
std::map<int, std::map<std::string, Ranks>> memberships(int world_size, const RankMap& map) {
  std::map<int, std::map<std::string, Ranks>> all;
  std::mutex mutex;
  run_ranks(world_size, [&](Communicator& world) {
    const ParallelGroups groups = make_groups(world, map);
    std::map<std::string, Ranks> mine;
    for (const auto& [name, group] : {std::pair{"tp", groups.tp.get()},
                                      {"cp", groups.cp.get()},
                                      {"pp", groups.pp.get()},
                                      {"dp", groups.dp.get()},
                                      {"model", groups.model.get()},
                                      {"embedding", groups.embedding.get()},
                                      {"role", groups.role.get()}}) {
      const Ranks ranks = members_of(group, world.rank());
      if (!ranks.empty()) mine[name] = ranks;
    }
    const std::lock_guard lock(mutex);
    all[world.rank()] = mine;
  });
  return all;
}

TEST(Groups, HoldTheRanksThatDifferAlongTheirAxisInAxisOrder) {
  ParallelLayout layout{{.tp = 2, .pp = 2, .dp = 2}};
  const auto all = memberships(8, map_of(layout, {0, 1, 2, 3, 4, 5, 6, 7}));
  // rank = tp + 2 dp + 4 pp; rank 6 is (tp 0, dp 1, pp 1).
  EXPECT_THAT(all.at(6).at("tp"), ElementsAre(6, 7));
  EXPECT_THAT(all.at(6).at("pp"), ElementsAre(2, 6));
  EXPECT_THAT(all.at(6).at("dp"), ElementsAre(4, 6));
  EXPECT_THAT(all.at(6).at("model"), ElementsAre(2, 3, 6, 7));
  EXPECT_THAT(all.at(6).at("embedding"), ElementsAre(2, 6));
  EXPECT_THAT(all.at(6).at("role"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(all.at(6).count("cp"), 0u);
}

TEST(Groups, OfOneMemberAreAbsent) {
  const auto all = memberships(2, map_of(ParallelLayout{{.tp = 2}}, {0, 1}));
  EXPECT_EQ(all.at(1).size(), 3u);  // tp, model, role
  EXPECT_TRUE(memberships(1, map_of(ParallelLayout{}, {0})).at(0).empty());
}

TEST(Groups, EmbeddingJoinsFirstAndLastStageOnly) {
  const auto all = memberships(6, map_of(ParallelLayout{{.tp = 2, .pp = 3}}, {0, 1, 2, 3, 4, 5}));
  EXPECT_THAT(all.at(1).at("embedding"), ElementsAre(1, 5));
  EXPECT_THAT(all.at(5).at("embedding"), ElementsAre(1, 5));
  EXPECT_EQ(all.at(3).count("embedding"), 0u);
}

TEST(Groups, FollowAnyListOfRanksAndLeaveOthersOut) {
  const auto all =
      memberships(6, map_of(ParallelLayout{{.tp = 2, .dp = 2, .dp_shard = 2}}, {5, 2, 0, 3}));
  EXPECT_THAT(all.at(0).at("tp"), ElementsAre(0, 3));
  EXPECT_THAT(all.at(3).at("dp"), ElementsAre(2, 3));
  EXPECT_THAT(all.at(3).at("role"), ElementsAre(5, 2, 0, 3));
  EXPECT_TRUE(all.at(1).empty());
  EXPECT_TRUE(all.at(4).empty());
}

TEST(Groups, DataParallelRanksCountReplicasThenShards) {
  const RankMap map = map_of(ParallelLayout{{.dp = 4, .dp_shard = 2}}, {0, 1, 2, 3});
  run_ranks(4, [&](Communicator& world) {
    const ParallelGroups groups = make_groups(world, map);
    EXPECT_EQ(groups.dp_rank, groups.dp->rank());
    EXPECT_EQ(groups.dp_rank, groups.coord.dp_replicate * 2 + groups.coord.dp_shard);
    EXPECT_EQ(groups.dp_size, 4);
  });
}

TEST(Groups, SayWhichStageARankIs) {
  const RankMap map = map_of(ParallelLayout{{.pp = 3}}, {1, 2, 3});
  run_ranks(4, [&](Communicator& world) {
    const ParallelGroups groups = make_groups(world, map);
    EXPECT_EQ(groups.member, world.rank() != 0);
    if (!groups.member) return;
    EXPECT_EQ(groups.index, world.rank() - 1);
    EXPECT_EQ(groups.first_stage, world.rank() == 1);
    EXPECT_EQ(groups.last_stage, world.rank() == 3);
  });
}

TEST(Groups, AreDecoratedByName) {
  const RankMap map = map_of(ParallelLayout{{.tp = 2}}, {0, 1});
  run_ranks(2, [&](Communicator& world) {
    std::vector<std::string> names;
    make_groups(world, map, [&](std::unique_ptr<Communicator> group, const std::string& name) {
      names.push_back(name);
      return group;
    });
    EXPECT_THAT(names, ElementsAre("tp", "model", "role"));
  });
}

}  // namespace
}  // namespace tessera
