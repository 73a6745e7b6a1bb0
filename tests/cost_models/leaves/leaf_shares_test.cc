// What of the bytes between nodes passes uplinks of leaf switches, against counts by hand and of
// listed ranks.
#include "cost_models/leaves/leaf_shares.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "cost_models/collective.h"

namespace tessera {
namespace {

ClusterSpec leaves_of(std::int64_t nodes, std::int64_t nodes_per_leaf, double oversubscription,
                      bool rails = false) {
  ClusterSpec cluster;
  cluster.gpus_per_node = 8;
  cluster.nodes = nodes;
  cluster.nics_per_node = 8;
  cluster.nic = gb_per_s(50);
  cluster.intra_per_gpu = gb_per_s(450);
  cluster.nodes_per_leaf = nodes_per_leaf;
  cluster.oversubscription = oversubscription;
  cluster.rails = rails;
  return cluster;
}

GroupSpread spread(std::int64_t gpus, double ranks, double nodes, std::int64_t step) {
  return {.gpus = gpus,
          .ranks = ranks,
          .nodes = nodes,
          .step = step,
          .extent = static_cast<std::int64_t>(ranks) * step,
          .members = ranks};
}

TEST(LeafShares, CountWhereUplinksAreNarrowAndSharedByNodes) {
  EXPECT_TRUE(has_leaves(leaves_of(4, 2, 2)));
  EXPECT_FALSE(has_leaves(leaves_of(4, 1, 2)));  // every node has its own
  EXPECT_FALSE(has_leaves(leaves_of(4, 4, 2)));  // nothing leaves the switch
  EXPECT_FALSE(has_leaves(leaves_of(4, 2, 1)));
  EXPECT_TRUE(has_leaves(leaves_of(4, 4, 2, true)));  // from rail to rail
}

// Four nodes a leaf, eight in all.
TEST(LeafShares, OfGroupsThatFillLeaves) {
  const ClusterSpec cluster = leaves_of(8, 4, 4);
  // Groups of two nodes stay under a switch.
  EXPECT_EQ(leaf_shares(cluster, spread(64, 16, 2, 1)), (LeafShares{0, 0}));
  // One of all GPUs: of four nodes that send round the ring one sends to the other leaf, and of 56
  // ranks of other nodes 32 hang there.
  EXPECT_EQ(leaf_shares(cluster, spread(64, 64, 8, 1)), (LeafShares{0.25, 32.0 / 56}));
  // Every eighth rank: the same of one member a node; four of seven others are under the other.
  EXPECT_EQ(leaf_shares(cluster, spread(64, 8, 8, 8)), (LeafShares{0.25, 4.0 / 7}));
  // Pairs whose members are a leaf apart.
  EXPECT_EQ(leaf_shares(cluster, spread(64, 2, 2, 32)), (LeafShares{1, 1}));
}

// Three nodes a leaf: the second group of two nodes lies under two switches.
TEST(LeafShares, OfGroupsThatLieAcrossTheEdgeOfALeaf) {
  const ClusterSpec cluster = leaves_of(6, 3, 3);
  const LeafShares cut = leaf_shares(cluster, spread(48, 16, 2, 1));
  EXPECT_NEAR(cut.ring, 8.0 / 24, 1e-12);  // of three nodes one sends over the uplink
  EXPECT_NEAR(cut.pairs, 8.0 / 24, 1e-12);
  // Where a role's GPUs end below the uplink of three nodes, one node's bytes have it alone.
  const LeafShares few = leaf_shares(cluster, spread(32, 32, 4, 1));
  EXPECT_NEAR(few.ring, 8.0 / 24, 1e-12);
  EXPECT_NEAR(few.pairs, 24 * (8.0 / 24) / 24, 1e-12);
}

TEST(LeafShares, OfRailsAreThoseOfCards) {
  const ClusterSpec cluster = leaves_of(4, 4, 4, true);
  // A ring passes from each card to the same card of the next node; of all to all seven of eight
  // ranks of another node hang on other rails.
  GroupSpread all = spread(32, 32, 4, 1);
  all.one_card = 1.0 / 8;
  EXPECT_EQ(leaf_shares(cluster, all), (LeafShares{0, 7.0 / 8}));
}

TEST(LeafShares, OfMessagesBetweenStages) {
  const ClusterSpec cluster = leaves_of(8, 4, 4);
  // Eight stages of a node: of four nodes the last one's messages leave; of two pipelines of four
  // none do; stages of a leaf each send all over the uplink.
  EXPECT_EQ(leaf_share_of_messages(cluster, 64, 8, 64), 0.25);
  EXPECT_EQ(leaf_share_of_messages(cluster, 64, 8, 32), 0);
  EXPECT_EQ(leaf_share_of_messages(cluster, 64, 32, 64), 1);
}

TEST(LeafShares, CountedOfListedRanksAreTheSame) {
  int compared = 0;
  for (const std::int64_t nodes_per_leaf : {2, 3, 4}) {
    const ClusterSpec cluster = leaves_of(12, nodes_per_leaf, 4);
    for (const int step : {1, 2, 4, 8, 16, 32, 48}) {
      for (const int ranks : {2, 3, 4, 6, 8, 12, 16, 24, 48, 96}) {
        if (96 % (ranks * step) != 0) continue;
        std::vector<std::vector<int>> groups;
        std::vector<std::pair<int, int>> messages;
        for (int first = 0; first < 96; ++first) {
          if (first / step % ranks != 0) continue;
          std::vector<int>& group = groups.emplace_back();
          for (int i = 0; i < ranks; ++i) group.push_back(first + i * step);
          for (int i = 0; i + 1 < ranks; ++i) messages.emplace_back(group[i], group[i + 1]);
        }
        const double nodes = std::max(1.0, std::min<double>(ranks, ranks * step / 8.0));
        if (nodes <= 1 || (step < 8 && ranks * step % 8 != 0)) continue;
        const LeafShares own = leaf_shares(cluster, spread(96, ranks, nodes, step));
        const LeafShares counted = counted_leaf_shares(cluster, groups);
        EXPECT_NEAR(own.ring, counted.ring, 1e-9) << nodes_per_leaf << " " << ranks << " " << step;
        EXPECT_NEAR(own.pairs, counted.pairs, 1e-9)
            << nodes_per_leaf << " " << ranks << " " << step;
        if (step % 8 == 0) {
          EXPECT_NEAR(leaf_share_of_messages(cluster, 96, step, std::int64_t{ranks} * step),
                      counted_leaf_share(cluster, messages), 1e-9);
        }
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 60);
}

// A collective takes as long as its card, or as its part takes over the uplink.
TEST(LeafShares, DecideTheRateBetweenNodes) {
  Calibration calibration;
  calibration.inter_efficiency.value = 1;
  const ClusterSpec cluster = leaves_of(8, 4, 7);
  const auto rate = [&](Collective collective, GroupShape group) {
    return inter_node_bandwidth(collective, group, cluster, calibration).value;
  };
  EXPECT_EQ(rate(Collective::all_gather, group_shape(cluster, 16, 1)), 50e9);
  EXPECT_NEAR(rate(Collective::all_gather, group_shape(cluster, 64, 1)), 50e9 / (7 * 0.25), 1);
  EXPECT_NEAR(rate(Collective::all_to_all, group_shape(cluster, 64, 1)), 50e9 / 4, 1);
  EXPECT_NEAR(rate(Collective::all_gather, {8, 8}), 50e9 / 7, 1);  // of which nothing is known
}

}  // namespace
}  // namespace tessera
