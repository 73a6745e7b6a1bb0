#include "cost_models/layout/rank_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Groups = std::vector<std::vector<int>>;

/// The paper's p-t-d notation.
ParallelLayout ptd(int pp, int tp, int dp) {
  return {{.tp = tp, .pp = pp, .dp = dp}, 0, even_stages(8, pp)};
}

RankMap mapped(RankOrder order, const ParallelLayout& layout, const RankMap* training = nullptr) {
  std::vector<int> ranks(static_cast<size_t>(layout.ranks()));
  std::iota(ranks.begin(), ranks.end(), 0);
  Problems problems;
  RankMap map = make_rank_map(order, layout, ranks, training, "/roles/rollout", problems);
  EXPECT_THAT(problems, IsEmpty());
  return map;
}

// The four cases of HybridFlow's Fig. 8 and their relatives; pg-tg-dg-d, dp = dg x d.
TEST(RankMap, VanillaGroupsOfEightGpus) {
  const RankMap training = mapped(RankOrder::contiguous, ptd(1, 4, 2));
  const RankMap generation = mapped(RankOrder::contiguous, ptd(1, 2, 4));
  EXPECT_EQ(groups_along(generation, Axis::tp), (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(micro_dp_groups(training, generation), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
}

TEST(RankMap, HybridFlowGroupsOfEightGpus) {
  const RankMap training = mapped(RankOrder::contiguous, ptd(1, 4, 2));
  const RankMap generation = mapped(RankOrder::strided, ptd(1, 2, 4), &training);
  EXPECT_EQ(groups_along(generation, Axis::tp), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(micro_dp_groups(training, generation), (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
}

TEST(RankMap, VanillaGroupsOfTwoStagesOnSixteenGpus) {
  const RankMap training = mapped(RankOrder::contiguous, ptd(2, 4, 2));
  const RankMap generation = mapped(RankOrder::contiguous, ptd(1, 2, 8));
  EXPECT_EQ(groups_along(generation, Axis::tp),
            (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}}));
  EXPECT_EQ(micro_dp_groups(training, generation),
            (Groups{{0, 2, 4, 6}, {1, 3, 5, 7}, {8, 10, 12, 14}, {9, 11, 13, 15}}));
}

TEST(RankMap, HybridFlowGroupsOfTwoStagesOnSixteenGpus) {
  const RankMap training = mapped(RankOrder::contiguous, ptd(2, 4, 2));
  const RankMap generation = mapped(RankOrder::strided, ptd(1, 2, 8), &training);
  EXPECT_EQ(groups_along(generation, Axis::tp),
            (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}}));
  EXPECT_EQ(micro_dp_groups(training, generation),
            (Groups{{0, 1, 4, 5}, {2, 3, 6, 7}, {8, 9, 12, 13}, {10, 11, 14, 15}}));
}

TEST(RankMap, HybridFlowGroupsOfTp8OnSixteenGpus) {
  const RankMap training = mapped(RankOrder::contiguous, ptd(1, 8, 2));
  const RankMap generation = mapped(RankOrder::strided, ptd(1, 2, 8), &training);
  EXPECT_EQ(groups_along(generation, Axis::tp),
            (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}, {8, 12}, {9, 13}, {10, 14}, {11, 15}}));
  EXPECT_EQ(micro_dp_groups(training, generation),
            (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}}));
}

TEST(RankMap, HybridFlowKeepsTheStagesOfAPipelinedRollout) {
  const RankMap training = mapped(RankOrder::contiguous, ptd(2, 4, 2));
  const RankMap generation = mapped(RankOrder::strided, ptd(2, 2, 4), &training);
  EXPECT_EQ(groups_along(generation, Axis::tp),
            (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}}));
  EXPECT_EQ(groups_along(generation, Axis::pp),
            (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}, {8, 12}, {9, 13}, {10, 14}, {11, 15}}));
  EXPECT_EQ(micro_dp_groups(training, generation),
            (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}}));
}

TEST(RankMap, MegatronPutsThePipelineSlowest) {
  const RankMap map = mapped(RankOrder::megatron, ptd(2, 2, 2));
  EXPECT_EQ(groups_along(map, Axis::tp), (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(groups_along(map, Axis::dp), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(groups_along(map, Axis::pp), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(groups_along(map, Axis::model), (Groups{{0, 1, 4, 5}, {2, 3, 6, 7}}));
}

TEST(RankMap, AListIsTakenInTheOrderOfTheCoordinates) {
  const std::vector<int> ranks{5, 1, 7, 3};
  Problems problems;
  const RankMap map =
      make_rank_map(RankOrder::list, ptd(2, 2, 1), ranks, nullptr, "/ranks", problems);
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_EQ(groups_along(map, Axis::tp), (Groups{{5, 1}, {7, 3}}));
  EXPECT_EQ(group_of(map, Axis::pp, 3), (std::vector<int>{1, 3}));
  EXPECT_EQ(map.rank_at({.tp = 1, .pp = 1}), 3);
  EXPECT_EQ(map.index_of(2), -1);
}

TEST(RankMap, EveryOrderGivesEveryCoordinateOnce) {
  ParallelLayout layout = ptd(2, 2, 2);
  layout.cp = 2, layout.dp_shard = 2, layout.zero = 3;
  for (const RankOrder order : {RankOrder::contiguous, RankOrder::megatron}) {
    const RankMap map = mapped(order, layout);
    for (const Axis axis : {Axis::tp, Axis::cp, Axis::pp, Axis::dp, Axis::dp_replicate,
                            Axis::dp_shard, Axis::model}) {
      size_t members = 0;
      for (const auto& group : groups_along(map, axis)) members += group.size();
      EXPECT_EQ(members, map.ranks.size());
    }
    for (size_t i = 0; i < map.ranks.size(); ++i) {
      EXPECT_EQ(map.rank_at(map.coords[i]), map.ranks[i]);
    }
  }
}

TEST(RankMap, StridedDegreesThatDoNotDivideAreRefused) {
  const RankMap training = mapped(RankOrder::contiguous, ptd(1, 4, 2));
  std::vector<int> ranks(8);
  std::iota(ranks.begin(), ranks.end(), 0);
  Problems problems;
  make_rank_map(RankOrder::strided, ptd(2, 2, 2), ranks, &training, "/roles/rollout", problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems.front().found, "pp 2");
  problems.clear();
  for (int& rank : ranks) rank += 8;
  make_rank_map(RankOrder::strided, ptd(1, 2, 4), ranks, &training, "/roles/rollout", problems);
  EXPECT_EQ(problems.size(), 1u);
  problems.clear();
  make_rank_map(RankOrder::list, ptd(1, 2, 1), std::vector<int>{3, 3}, nullptr, "/", problems);
  EXPECT_EQ(problems.size(), 1u);
}

}  // namespace
}  // namespace tessera
