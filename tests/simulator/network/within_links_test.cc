// Links that GPUs of a node share: the closed form of groups, bytes walked hop by hop over the tree
// of switches and sockets, and reshards.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cost_models/collective.h"
#include "simulator/network/collective_links.h"
#include "simulator/network/flows.h"
#include "simulator/reshard/arrivals.h"
#include "tests/simulator/sample_plans.h"

namespace tessera {
namespace {

constexpr double kPort = 32e9;

/// Nodes of `gpus` GPUs joined by PCIe; 0 GPUs behind a link: there is none.
ClusterSpec pcie_nodes(int gpus, SharedLink pcie_switch, SharedLink socket, int nodes = 1) {
  ClusterSpec cluster = cluster_of(gpus, nodes, 44);
  cluster.intra_per_gpu = BytesPerSecond{kPort};
  cluster.pcie_switch = pcie_switch;
  cluster.socket = socket;
  return cluster;
}

const std::vector<ClusterSpec> kNodes{
    pcie_nodes(8, {4, gb_per_s(32)}, {}),
    pcie_nodes(8, {}, {4, gb_per_s(20)}),
    pcie_nodes(8, {2, gb_per_s(32)}, {4, gb_per_s(40)}),
    pcie_nodes(8, {4, gb_per_s(64)}, {4, gb_per_s(12)}),
    pcie_nodes(16, {4, gb_per_s(32)}, {8, gb_per_s(50)}),
    pcie_nodes(4, {1, gb_per_s(16)}, {2, gb_per_s(25)}),
};

/// Curves are 80 % of a port, without latency.
Calibration plain() {
  Calibration calibration = arithmetic_only();
  for (CollectiveConstants& curve : calibration.collectives) {
    curve.bandwidth = BytesPerSecond{0.8 * kPort};
  }
  return calibration;
}

std::vector<std::vector<int>> strided(int gpus, int ranks, int stride) {
  std::vector<std::vector<int>> groups;
  for (int block = 0; block < gpus; block += ranks * stride) {
    for (int first = block; first < block + stride; ++first) {
      std::vector<int>& members = groups.emplace_back();
      for (int i = 0; i < ranks; ++i) members.push_back(first + i * stride);
    }
  }
  return groups;
}

/// Seconds of groups that run one collective of `wire` bytes a rank at once.
std::vector<double> together(const ClusterNetwork& network,
                             const std::vector<std::vector<int>>& groups, Collective collective,
                             double wire) {
  std::vector<Flow> flows;
  for (const auto& members : groups) {
    LinkWeights weights;
    add_within(network, collective, members, weights);
    for (const int rank : members) {
      weights[network.port(rank, false)] = weights[network.port(rank, true)] = 1;
    }
    Flow& flow = flows.emplace_back();
    flow.bytes = wire;
    for (const auto& [link, weight] : weights) {
      flow.links.push_back(link);
      flow.weights.push_back(weight);
    }
  }
  return finish_times(network.flow_capacity(), flows);
}

TEST(WithinLinks, TakeAsLongAsTheClosedFormWhereAllGroupsOfANodeCommunicate) {
  const Calibration calibration = plain();
  int compared = 0, slower = 0;
  for (const ClusterSpec& cluster : kNodes) {
    const int gpus = static_cast<int>(cluster.gpus_per_node);
    const ClusterNetwork network = cluster_network(cluster, calibration, gpus);
    for (int ranks = 2; ranks <= gpus; ranks *= 2) {
      for (int stride = 1; ranks * stride <= gpus; stride *= 2) {
        const GroupShape shape = group_shape(cluster, ranks, stride);
        for (const Collective collective : {Collective::all_reduce, Collective::all_gather,
                                            Collective::reduce_scatter, Collective::all_to_all}) {
          const Traffic bytes{1e9}, wire = wire_bytes(collective, bytes, ranks);
          const double closed =
              collective_seconds(collective, bytes, shape, cluster, calibration).value;
          if (closed > 1.001 * wire.value / (0.8 * kPort)) ++slower;
          for (const double end :
               together(network, strided(gpus, ranks, stride), collective, wire.value)) {
            ASSERT_NEAR(end, closed, 1e-9 * closed)
                << gpus << " GPUs, " << ranks << " by " << stride << ", " << name_of(collective);
          }
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 100);
  EXPECT_GT(slower, 40);
}

/// The way from a GPU to another of its node, as a tree says it: to the switch, to the socket, to
/// the other socket, down again. Edges by name, with their way.
std::vector<std::string> walked(const ClusterSpec& cluster, int from, int to) {
  std::vector<std::string> up, down;
  const auto edges = [&](int gpu) {
    std::vector<std::pair<std::string, std::int64_t>> way{{"GPU " + std::to_string(gpu), gpu}};
    for (const auto& [link, name] : {std::pair{cluster.pcie_switch, "node 0, switch "},
                                     std::pair{cluster.socket, "node 0, socket "}}) {
      if (link.gpus == 0) continue;
      way.emplace_back(name + std::to_string(gpu / link.gpus), gpu / link.gpus);
    }
    return way;
  };
  const auto one = edges(from), other = edges(to);
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (one[i].first == other[i].first) continue;  // they meet below
    up.push_back(one[i].first + ", out");
    down.push_back(other[i].first + ", in");
  }
  up.insert(up.end(), down.begin(), down.end());
  std::sort(up.begin(), up.end());
  return up;
}

TEST(WithinLinks, LeadOverSwitchesAndSocketsAsTheTreeOfANodeDoes) {
  for (const ClusterSpec& cluster : kNodes) {
    const int gpus = static_cast<int>(cluster.gpus_per_node);
    const ClusterNetwork network = cluster_network(cluster, plain(), gpus);
    std::map<int, std::set<int>> ranks;
    for (int from = 0; from < gpus; ++from) {
      for (int to = 0; to < gpus; ++to) {
        if (from == to) continue;
        std::vector<std::string> names;
        for (const int link : network.path(from, to)) {
          names.push_back(network.name(link));
          ranks[link].insert(names.back().ends_with(", out") ? from : to);
          EXPECT_TRUE(network.is_within(link));
        }
        std::sort(names.begin(), names.end());
        EXPECT_EQ(names, walked(cluster, from, to));
      }
    }
    for (const auto& [link, wanted] : ranks) {
      const std::vector<int> found = network.ranks_of(link);
      EXPECT_EQ(std::set<int>(found.begin(), found.end()), wanted) << network.name(link);
    }
  }
}

TEST(WithinLinks, AreNoneOfAClusterThatStatesNone) {
  const ClusterSpec cluster = cluster_of(8, 2, 80);
  const ClusterNetwork network = cluster_network(cluster, plain(), 16);
  EXPECT_FALSE(shares_links(cluster));
  EXPECT_EQ(network.flow_capacity(), network.capacity);
  LinkWeights weights;
  add_within(network, Collective::all_reduce, std::array{0, 1, 2, 3}, weights);
  EXPECT_TRUE(weights.empty());
  EXPECT_EQ(group_shape(cluster, 2, 4), (GroupShape{2, 1, 0, 0}));
}

TEST(WithinLinks, OneGroupAloneHasTheLinkOfTwoSocketsToItself) {
  const ClusterSpec cluster = pcie_nodes(8, {4, gb_per_s(32)}, {4, gb_per_s(20)});
  const Calibration calibration = plain();
  const ClusterNetwork network = cluster_network(cluster, calibration, 8);
  const GroupShape shape = group_shape(cluster, 2, 4);
  EXPECT_EQ(shape, (GroupShape{2, 1, 4, 4}));
  const double alone = together(network, {{0, 4}}, Collective::all_reduce, 16e9)[0];
  EXPECT_NEAR(alone, 1, 1e-12);  // 16 GB over 80 % of 20 GB/s
  const auto both = together(network, {{0, 4}, {1, 5}}, Collective::all_reduce, 16e9);
  EXPECT_NEAR(both[0], 2, 1e-12);
  const double closed =
      collective_seconds(Collective::all_reduce, Traffic{16e9}, shape, cluster, calibration).value;
  EXPECT_NEAR(closed, 4, 1e-12);  // of four groups
}

Transfer sent(int source, int destination, std::int64_t bytes) {
  const std::array shape{bytes};
  return {0, source, destination, whole(shape)};
}

std::vector<Arrival> arrivals(const std::vector<Transfer>& transfers, const ClusterSpec& cluster) {
  const std::array element{Bytes{1}};
  const Calibration calibration = plain();
  const std::array ends{Machines{cluster, calibration}};
  return arrivals_of(transfers, element, static_cast<int>(cluster.gpus()), {}, ends);
}

TEST(WithinLinks, OfAReshardAreTheClosedFormWhereAllReadFromAll) {
  for (const ClusterSpec& cluster : kNodes) {
    const int gpus = static_cast<int>(cluster.gpus_per_node);
    std::vector<Transfer> all;
    for (int from = 0; from < gpus; ++from) {
      for (int to = 0; to < gpus; ++to) {
        if (from != to) all.push_back(sent(from, to, 1'000'000'000));
      }
    }
    const MovedBytes moved = spread_within(Traffic{(gpus - 1) * 1e9}, cluster);
    const Seconds closed = travel_seconds(moved, 0, moved, {}, cluster, plain());
    for (const Arrival& arrival : arrivals(all, cluster)) {
      EXPECT_NEAR(arrival.seconds.value, closed.value, 1e-8 * closed.value);
    }
  }
}

TEST(WithinLinks, OfAReshardAreSharedByThoseThatCrossThemAlone) {
  const ClusterSpec cluster = pcie_nodes(8, {4, gb_per_s(32)}, {4, gb_per_s(20)});
  const auto seconds = [&](const std::vector<Transfer>& transfers) {
    std::vector<double> result;
    for (const Arrival& arrival : arrivals(transfers, cluster)) {
      result.push_back(arrival.seconds.value);
    }
    return result;
  };
  const std::int64_t bytes = 16'000'000'000;
  EXPECT_NEAR(seconds({sent(0, 4, bytes)})[0], 1, 1e-8);
  const auto two = seconds({sent(0, 4, bytes), sent(1, 5, bytes)});
  EXPECT_NEAR(two[0], 2, 1e-8);
  EXPECT_NEAR(two[1], 2, 1e-8);
  // Behind one switch everybody has a port of its own, and the other way is another one.
  const auto behind = seconds({sent(0, 1, bytes), sent(2, 3, bytes), sent(4, 0, bytes)});
  EXPECT_NEAR(behind[1], 16 / 25.6, 1e-8);
  EXPECT_NEAR(behind[2], 16 / 25.6, 1e-8);
  EXPECT_NEAR(behind[0], 1, 1e-8);
}

}  // namespace
}  // namespace tessera
