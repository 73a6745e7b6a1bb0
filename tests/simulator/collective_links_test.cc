// The links that collectives cross, against rings walked hop by hop, the closed form of their time,
// and what goes in coming out.
#include "simulator/network/collective_links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "simulator/network/flows.h"
#include "tests/simulator/sample_plans.h"

namespace tessera {
namespace {

ClusterSpec nodes_of(int nodes, int gpus, int cards, double oversubscription = 1,
                     int nodes_per_leaf = 1, bool rails = false) {
  ClusterSpec cluster = cluster_of(gpus, nodes, 80);
  cluster.nics_per_node = cards;
  cluster.nic = gb_per_s(50);
  cluster.oversubscription = oversubscription;
  cluster.nodes_per_leaf = nodes_per_leaf;
  cluster.rails = rails;
  return cluster;
}

/// The machine of arithmetic_only without latencies: a node's collectives take no time.
Calibration free_nodes() { return arithmetic_only(); }

/// Seconds of `groups` running one collective at once, as one flow each.
std::vector<double> together(const ClusterNetwork& network,
                             const std::vector<std::vector<int>>& groups, Collective collective,
                             Traffic bytes, GroupShape shape) {
  std::vector<Flow> flows;
  for (const auto& members : groups) {
    LinkWeights weights;
    add_collective(network, collective, members, weights);
    Flow& flow = flows.emplace_back();
    flow.bytes = member_bytes(collective, bytes, shape).card.value;
    for (const auto& [link, weight] : weights) {
      flow.links.push_back(link);
      flow.weights.push_back(weight);
    }
  }
  return finish_times(network.capacity, flows);
}

/// Of the closed form what the bytes take, without hops.
double closed_form(Collective collective, Traffic bytes, GroupShape shape,
                   const ClusterSpec& cluster, const Calibration& calibration) {
  const auto seconds = [&](Traffic of) {
    return collective_seconds(collective, of, shape, cluster, calibration).value;
  };
  return seconds(bytes) - seconds(Traffic{1e-12});
}

constexpr Collective kRings[] = {Collective::all_reduce, Collective::all_gather,
                                 Collective::reduce_scatter, Collective::all_to_all};

TEST(CollectiveLinks, TakeAsLongAsTheClosedFormWhereAllGpusOfANodeCommunicate) {
  const Calibration calibration = free_nodes();
  int compared = 0;
  for (const int nodes : {2, 3, 4, 8}) {
    for (const int cards : {1, 2, 4, 8}) {
      for (const double oversubscription : {1.0, 2.0, 4.0}) {
        const ClusterSpec cluster = nodes_of(nodes, 8, cards, oversubscription);
        const int ranks = 8 * nodes;
        const ClusterNetwork network = cluster_network(cluster, calibration, ranks);
        for (const int stride : {1, 2, 4, 8}) {  // groups of a node
          std::vector<std::vector<int>> groups(static_cast<std::size_t>(stride));
          for (int rank = 0; rank < ranks; ++rank) {
            groups[static_cast<std::size_t>(rank % stride)].push_back(rank);
          }
          const GroupShape shape{ranks / stride, nodes};
          for (const Collective collective : kRings) {
            for (const double megabytes : {0.1, 16.0, 1024.0}) {
              const Traffic bytes{megabytes * 1e6};
              const double closed = closed_form(collective, bytes, shape, cluster, calibration);
              for (const double end : together(network, groups, collective, bytes, shape)) {
                ASSERT_NEAR(end, closed, 1e-9 * closed + 1e-15)
                    << nodes << " nodes, " << cards << " cards, stride " << stride << ", "
                    << name_of(collective);
              }
              ++compared;
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(compared, 4 * 4 * 3 * 4 * 4 * 3);
}

TEST(CollectiveLinks, OfReplicasThatSendToTheExpertsOfAllTakeAsLongAsTheClosedForm) {
  // Each replica's part of an all-to-all is a flow of its own, as replicas go their own pace.
  const Calibration calibration = free_nodes();
  int compared = 0;
  for (const int nodes : {2, 3, 4, 8}) {
    for (const int cards : {1, 2, 4, 8}) {
      for (const double oversubscription : {1.0, 2.0, 4.0}) {
        const ClusterSpec cluster = nodes_of(nodes, 8, cards, oversubscription);
        const int ranks = 8 * nodes;
        const ClusterNetwork network = cluster_network(cluster, calibration, ranks);
        for (const int stride : {1, 2, 4, 8}) {  // of an expert group's ranks
          for (const int replica : {1, 2, 4, 8, 16}) {
            if (ranks % replica != 0) continue;
            const GroupShape shape{ranks / stride, nodes};
            for (const double megabytes : {0.1, 16.0, 1024.0}) {
              const Traffic bytes{megabytes * 1e6};
              std::vector<Flow> flows;
              for (int first = 0; first < ranks; first += replica) {
                LinkWeights weights;
                for (int rank = first; rank < first + replica; ++rank) {
                  std::vector<int> group;
                  for (int other = rank % stride; other < ranks; other += stride) {
                    group.push_back(other);
                  }
                  add_sends(network, rank, group, weights);
                }
                Flow& flow = flows.emplace_back();
                flow.bytes = member_bytes(Collective::all_to_all, bytes, shape).card.value;
                for (const auto& [link, weight] : weights) {
                  flow.links.push_back(link);
                  flow.weights.push_back(weight);
                }
              }
              const double closed =
                  closed_form(Collective::all_to_all, bytes, shape, cluster, calibration);
              for (const double end : finish_times(network.capacity, flows)) {
                ASSERT_NEAR(end, closed, 1e-9 * closed + 1e-15)
                    << nodes << " nodes, " << cards << " cards, stride " << stride
                    << ", replicas of " << replica;
              }
              ++compared;
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(compared, (3 * 5 + 4) * 4 * 3 * 4 * 3);  // 3 nodes are no whole number of 16
}

TEST(CollectiveLinks, OfOneGroupOfSeveralHaveTheCardsToThemselves) {
  // Eight GPUs share two cards; one of four groups with two members a node has half of the GPUs of
  // each card idle beside it.
  const Calibration calibration = free_nodes();
  const ClusterSpec cluster = nodes_of(2, 8, 2);
  const ClusterNetwork network = cluster_network(cluster, calibration, 16);
  const Traffic bytes{8e9};
  const std::vector<int> one{0, 4, 8, 12};  // a member on each card
  const std::vector<int> other{1, 5, 9, 13};
  const double alone = together(network, {one}, Collective::all_gather, bytes, {4, 2})[0];
  // Half of the buffer crosses on two cards of 50 GB/s.
  EXPECT_NEAR(alone, 4e9 / 2 / 50e9, 1e-12);
  const auto both = together(network, {one, other}, Collective::all_gather, bytes, {4, 2});
  EXPECT_NEAR(both[0], 2 * alone, 1e-12);
  EXPECT_NEAR(both[1], 2 * alone, 1e-12);
  const double closed = closed_form(Collective::all_gather, bytes, {4, 2}, cluster, calibration);
  EXPECT_NEAR(closed, 4 * alone, 1e-9 * closed);  // which counts four groups
}

/// Bytes of each GPU's own part of a ring all-gather, passed on hop by hop: every node's block
/// makes its way around; who sends which bytes to whom.
std::map<std::pair<int, int>, double> walked(const std::vector<std::vector<int>>& nodes,
                                             double bytes) {
  std::map<std::pair<int, int>, double> sent;
  const std::size_t count = nodes.size(), channels = nodes.front().size();
  const double block = bytes / static_cast<double>(count * channels);
  for (std::size_t owner = 0; owner < count; ++owner) {
    for (std::size_t hop = 0; hop + 1 < count; ++hop) {
      for (std::size_t channel = 0; channel < channels; ++channel) {
        const int from = nodes[(owner + hop) % count][channel];
        const int to = nodes[(owner + hop + 1) % count][channel];
        sent[{from, to}] += block;
      }
    }
  }
  return sent;
}

TEST(CollectiveLinks, CarryWhatARingPassesOnHopByHop) {
  const Calibration calibration = free_nodes();
  for (const double oversubscription : {1.0, 3.0}) {
    for (const bool rails : {false, true}) {
      const ClusterSpec cluster = nodes_of(5, 4, 2, oversubscription, 2, rails);
      const ClusterNetwork network =
          cluster_network(cluster, calibration, 20, std::array{std::int64_t{3}});
      const std::vector<std::vector<int>> nodes{{0, 2}, {5, 7}, {8, 11}, {12, 13}, {16, 19}};
      std::vector<int> members;
      for (const auto& ranks : nodes) members.insert(members.end(), ranks.begin(), ranks.end());
      std::map<int, double> wanted;
      for (const auto& [ends, bytes] : walked(nodes, 1e9)) {
        for (const int link : network.path(ends.first, ends.second)) wanted[link] += bytes;
      }
      LinkWeights weights;
      add_collective(network, Collective::all_gather, members, weights);
      const double card = member_bytes(Collective::all_gather, Traffic{1e9}, {10, 5}).card.value;
      ASSERT_EQ(weights.size(), wanted.size());
      for (const auto& [link, weight] : weights) {
        EXPECT_NEAR(weight * card, wanted.at(link), 1e-3) << network.name(link);
      }
    }
  }
}

TEST(CollectiveLinks, WhatLeavesCardsArrivesAtCards) {
  const ClusterNetwork network = cluster_network(nodes_of(4, 8, 4, 2, 2), free_nodes(), 32);
  for (const Collective collective : {Collective::all_reduce, Collective::all_to_all,
                                      Collective::broadcast, Collective::all_gather}) {
    for (const int first : {0, 3, 6}) {
      std::vector<int> members;  // as many on no two nodes
      for (int rank = first; rank < 32; rank += 3 + first) members.push_back(rank);
      LinkWeights weights;
      add_collective(network, collective, members, weights);
      std::map<std::pair<LinkKind, int>, double> sum;
      for (const auto& [link, weight] : weights) sum[{network.kind(link), link % 2}] += weight;
      for (const LinkKind kind : {LinkKind::card, LinkKind::uplink}) {
        EXPECT_NEAR((sum[{kind, 0}]), (sum[{kind, 1}]), 1e-9) << name_of(collective);
      }
    }
  }
}

TEST(ClusterNetwork, LeavesAndRailsAreCrossedWhereTheyDiffer) {
  const Calibration calibration = free_nodes();
  const auto names = [](const ClusterNetwork& network, int from, int to) {
    std::vector<std::string> words;
    for (const int link : network.path(from, to)) words.push_back(network.name(link));
    return words;
  };
  using Words = std::vector<std::string>;
  const ClusterNetwork leaves = cluster_network(nodes_of(4, 8, 8, 2, 2), calibration, 32);
  EXPECT_EQ(names(leaves, 1, 9), (Words{"node 0, card 1, out", "node 1, card 1, in"}));
  EXPECT_EQ(names(leaves, 1, 17),
            (Words{"node 0, card 1, out", "leaf 0, out", "node 2, card 1, in", "leaf 1, in"}));
  const ClusterNetwork rails = cluster_network(nodes_of(4, 8, 8, 2, 2, true), calibration, 32);
  EXPECT_EQ(names(rails, 1, 9), (Words{"node 0, card 1, out", "node 1, card 1, in"}));
  EXPECT_EQ(names(rails, 1, 10), (Words{"node 0, card 1, out", "leaf 0, rail 1, out",
                                        "node 1, card 2, in", "leaf 0, rail 2, in"}));
  EXPECT_EQ(names(rails, 1, 2), (Words{"GPU 1, out", "GPU 2, in"}));
  // Two nodes of eight cards, half as much up as down; of a rail one card of each.
  const int leaf = leaves.path(1, 17)[1], rail = rails.path(1, 10)[1];
  EXPECT_EQ(leaves.rate(leaf), 2 * 8 * 50e9 / 2);
  EXPECT_EQ(rails.rate(rail), 2 * 50e9 / 2);
}

/// The ranks of a link are those from which a path over it leads, or to which.
TEST(ClusterNetwork, ALinkHasTheRanksWhoseEveryPathLeadsOverIt) {
  for (const auto& [nodes_per_leaf, rails] :
       {std::pair{1, false}, {2, false}, {2, true}, {3, true}}) {
    const ClusterNetwork network = cluster_network(nodes_of(4, 4, 2, 2, nodes_per_leaf, rails),
                                                   free_nodes(), 15, std::array{std::int64_t{1}});
    std::map<int, std::set<int>> wanted;
    for (int from = 0; from < 15; ++from) {
      for (int to = 0; to < 15; ++to) {
        if (from == to) continue;
        for (const int link : network.path(from, to)) {
          wanted[link].insert(network.name(link).ends_with(", out") ? from : to);
        }
      }
    }
    for (int link = 0; link < network.links(); ++link) {
      const std::vector<int> ranks = network.ranks_of(link);
      EXPECT_EQ(std::set<int>(ranks.begin(), ranks.end()), wanted[link]) << network.name(link);
      EXPECT_TRUE(std::is_sorted(ranks.begin(), ranks.end()));
    }
  }
}

TEST(ClusterNetwork, GpusOfALostCardUseThoseThatAreLeft) {
  const ClusterSpec cluster = nodes_of(2, 8, 2);
  const ClusterNetwork whole = cluster_network(cluster, free_nodes(), 16);
  const ClusterNetwork lost =
      cluster_network(cluster, free_nodes(), 16, std::array{std::int64_t{1}});
  EXPECT_EQ(whole.name(whole.path(15, 0)[0]), "node 1, card 1, out");
  EXPECT_EQ(lost.name(lost.path(15, 0)[0]), "node 1, card 0, out");
  std::vector<int> all;
  for (int rank = 0; rank < 16; ++rank) all.push_back(rank);
  const auto seconds = [&](const ClusterNetwork& network) {
    return together(network, {all}, Collective::all_reduce, Traffic{1e9}, {16, 2})[0];
  };
  EXPECT_NEAR(seconds(lost), 2 * seconds(whole), 1e-12);
}

}  // namespace
}  // namespace tessera
