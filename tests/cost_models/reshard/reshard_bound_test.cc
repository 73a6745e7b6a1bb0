// Oracles: closed forms, and Hall's condition over all subsets of demands.
#include "cost_models/reshard/reshard_bound.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>
#include <set>

#include "cost_models/collective.h"
#include "cost_models/documents/problem.h"
#include "cost_models/layout/reshard_plan.h"
#include "tests/cost_models/layout/sample_models.h"

namespace tessera {
namespace {

constexpr double kFabric = 400e9, kCard = 50e9;

ClusterSpec cluster_of(int per_node, int nodes, int cards, double oversubscription = 1) {
  ClusterSpec cluster;
  cluster.gpus_per_node = per_node;
  cluster.nodes = nodes;
  cluster.intra_link = "NVLink";
  cluster.intra_per_gpu = BytesPerSecond{450e9};
  cluster.nics_per_node = cards;
  cluster.nic = BytesPerSecond{kCard};
  cluster.oversubscription = oversubscription;
  return cluster;
}

Calibration rates() {
  Calibration calibration;
  calibration.inter_efficiency.value = 1;
  calibration.collectives.push_back(
      {.collective = Collective::copy_engine, .ranks = 2, .bandwidth = BytesPerSecond{kFabric}});
  return calibration;
}

ReshardBound bound_of(const std::vector<ReshardDemand>& demands, const ClusterSpec& cluster) {
  return reshard_bound(demands, cluster, rates());
}

constexpr Bytes kGiga{1'000'000'000};

TEST(ReshardBound, IsZeroWhereNothingMoves) {
  const ReshardBound bound = bound_of({}, cluster_of(8, 1, 8));
  EXPECT_EQ(bound.seconds, 0);
  EXPECT_TRUE(bound.narrowest().where.empty());
}

TEST(ReshardBound, OneHolderSendsToAllThroughItsOwnPort) {
  const ReshardBound bound =
      bound_of({{1, {0}, 2 * kGiga}, {2, {0}, kGiga}, {3, {0}, kGiga}}, cluster_of(4, 1, 4));
  EXPECT_DOUBLE_EQ(bound.leaving.seconds, 4e9 / kFabric);
  EXPECT_DOUBLE_EQ(bound.arriving.seconds, 2e9 / kFabric);
  EXPECT_DOUBLE_EQ(bound.destination.seconds, 2e9 / kFabric);
  EXPECT_DOUBLE_EQ(bound.seconds, 4e9 / kFabric);
  EXPECT_EQ(bound.narrowest().where, "out of NVLink of GPU 0");
}

TEST(ReshardBound, CardsOfTheirOwnSharedCardsAndUplinksAreTiers) {
  // Ranks 2 and 3 fetch from the other node.
  const std::vector<ReshardDemand> demands{{2, {0}, kGiga}, {3, {1}, kGiga}};
  EXPECT_DOUBLE_EQ(bound_of(demands, cluster_of(2, 2, 2)).seconds, 1e9 / kCard);
  EXPECT_DOUBLE_EQ(bound_of(demands, cluster_of(2, 2, 4)).seconds, 1e9 / (2 * kCard));
  const ReshardBound shared = bound_of(demands, cluster_of(2, 2, 1));
  EXPECT_DOUBLE_EQ(shared.seconds, 2e9 / kCard);
  EXPECT_DOUBLE_EQ(shared.destination.seconds, 1e9 / kCard);
  EXPECT_EQ(shared.narrowest().where, "into network card 0 of node 1");
  const ReshardBound narrowed = bound_of(demands, cluster_of(2, 2, 2, 4));
  EXPECT_DOUBLE_EQ(narrowed.seconds, 2e9 / (2 * kCard / 4));
  EXPECT_EQ(narrowed.narrowest().where, "into uplink of node 1");
  ClusterSpec one_leaf = cluster_of(2, 2, 2, 4);
  one_leaf.nodes_per_leaf = 2;
  EXPECT_DOUBLE_EQ(bound_of(demands, one_leaf).seconds, 1e9 / kCard);
}

TEST(ReshardBound, BothPortsOfAGpuServeWhatLiesOnBothSides) {
  // Rank 0 can fetch from its own node (1) and from another (2): fabric and card at once.
  const ReshardBound bound = bound_of({{0, {1, 2}, kGiga}}, cluster_of(2, 2, 2));
  EXPECT_DOUBLE_EQ(bound.arriving.seconds, 1e9 / (kFabric + kCard));
  EXPECT_DOUBLE_EQ(bound.destination.seconds, 1e9 / (kFabric + kCard));
}

TEST(ReshardBound, OfATrainingGroupGatheredInItsNodeIsTheBusiestRanksBytesOverTheFabric) {
  const ParameterTable table = parameter_table(even_model());
  std::vector<int> ranks(8);
  std::iota(ranks.begin(), ranks.end(), 0);
  Problems problems;
  const ParallelLayout training{{.tp = 4, .dp = 2}, 0, even_stages(8, 1)};
  const ParallelLayout generation{{.tp = 1, .dp = 8}, 0, even_stages(8, 1)};
  const RankMap from = make_rank_map(RankOrder::contiguous, training, ranks, nullptr, "", problems);
  const RankMap to = make_rank_map(RankOrder::strided, generation, ranks, &from, "", problems);
  const auto demands = reshard_demands(table, from, to, DType::bf16);
  const ReshardPlan plan = reshard_totals(table, from, to, DType::bf16);
  Bytes sum;
  for (const ReshardDemand& demand : demands) sum += demand.bytes;
  EXPECT_EQ(sum, plan.total_received);
  const ReshardBound bound = bound_of(demands, cluster_of(8, 1, 8));
  EXPECT_NEAR(bound.seconds, static_cast<double>(plan.bytes_received.value) / kFabric, 1e-15);
  // Senders can share the work evenly, so they bound it no tighter than the min-max sender.
  EXPECT_NEAR(bound.leaving.seconds, static_cast<double>(plan.min_max_sent.value) / kFabric,
              2 / kFabric);
}

/// max over subsets of demands: bytes / rate of the ports that they can use.
RC_GTEST_PROP(ReshardBound, EqualsTheTightestSubsetOfDemands, ()) {
  const int nodes = *rc::gen::inRange(1, 3), per_node = 3;
  const int world = nodes * per_node;
  std::vector<ReshardDemand> demands;
  const int count = *rc::gen::inRange(1, 8);
  for (int i = 0; i < count; ++i) {
    ReshardDemand demand{.destination = *rc::gen::inRange(0, world), .holders = {}, .bytes = {}};
    demand.bytes = Bytes{*rc::gen::inRange<std::int64_t>(1, 50) * 1'000'000};
    const int mask = *rc::gen::inRange(1, 1 << world);
    for (int rank = 0; rank < world; ++rank) {
      if (rank != demand.destination && (mask >> rank & 1) != 0) demand.holders.push_back(rank);
    }
    if (demand.holders.empty()) demand.holders = {(demand.destination + 1) % world};
    demands.push_back(demand);
  }
  std::sort(demands.begin(), demands.end(), [](const auto& a, const auto& b) {
    return std::tie(a.destination, a.holders) < std::tie(b.destination, b.holders);
  });
  const ReshardBound bound = bound_of(demands, cluster_of(per_node, nodes, per_node));
  double arriving = 0, leaving = 0;
  for (unsigned subset = 1; subset < 1U << demands.size(); ++subset) {
    double bytes = 0;
    std::set<std::pair<int, bool>> in, out;  // GPU, by its card
    for (std::size_t i = 0; i < demands.size(); ++i) {
      if ((subset >> i & 1) == 0) continue;
      bytes += static_cast<double>(demands[i].bytes.value);
      for (const int holder : demands[i].holders) {
        const bool card = holder / per_node != demands[i].destination / per_node;
        in.emplace(demands[i].destination, card);
        out.emplace(holder, card);
      }
    }
    const auto rate = [](const auto& ports) {
      double sum = 0;
      for (const auto& [gpu, card] : ports) sum += card ? kCard : kFabric;
      return sum;
    };
    arriving = std::max(arriving, bytes / rate(in));
    leaving = std::max(leaving, bytes / rate(out));
  }
  RC_ASSERT(std::abs(bound.arriving.seconds.value - arriving) <= 1e-6 * arriving);
  RC_ASSERT(std::abs(bound.leaving.seconds.value - leaving) <= 1e-6 * leaving);
  RC_ASSERT(bound.destination.seconds <= std::max(arriving, leaving) * (1 + 1e-6));
}

}  // namespace
}  // namespace tessera
