// SPDX-License-Identifier: GPL-3.0-or-later
// A node's topology as nvidia-smi prints it: read, laid over a cluster, asked in the form.
#include "gui/topology/node_topology.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

#include "cost_models/documents/problem.h"
#include "gui/pages/dropped_files.h"
#include "planner/plan/plan.h"
#include "tests/gui/explore_flow.h"

namespace tessera::gui {
namespace {

/// The table of `gpus` GPUs and `cards` network cards, as the program lays it out on a terminal.
template <class Way, class Card>
std::string table_of(int gpus, int cards, const Way& way, const Card& card) {
  std::ostringstream text;
  text << "\t\x1b[4mGPU0";
  for (int gpu = 1; gpu < gpus; ++gpu) text << "\tGPU" << gpu;
  for (int nic = 0; nic < cards; ++nic) text << "\tNIC" << nic;
  text << "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n";
  for (int row = 0; row < gpus; ++row) {
    text << "GPU" << row;
    for (int gpu = 0; gpu < gpus; ++gpu) text << "\t" << (gpu == row ? " X " : way(row, gpu));
    for (int nic = 0; nic < cards; ++nic) text << "\t" << card(row, nic);
    text << "\t0-47,96-143\t0\t\tN/A\n";
  }
  for (int nic = 0; nic < cards; ++nic) {
    text << "NIC" << nic;
    for (int gpu = 0; gpu < gpus; ++gpu) text << "\t" << card(gpu, nic);
    for (int other = 0; other < cards; ++other) text << "\t" << (other == nic ? " X " : "SYS");
    text << "\n";
  }
  return text.str() +
         "\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe as well as the SMP\n"
         "  NV#  = Connection traversing a bonded set of # NVLinks\n\nNIC Legend:\n\n"
         "  NIC0: mlx5_0\n";
}

/// A DGX H100: eight compute cards beside two of storage.
std::string dgx_h100() {
  return table_of(
      8, 10, [](int, int) { return "NV18"; },
      [](int gpu, int nic) { return nic < 8 ? (gpu == nic ? "PXB" : "SYS") : "SYS"; });
}

std::optional<NodeTopology> parsed(const std::string& text) {
  Problems problems;
  const auto topology = parse_topology(text, "topo.txt", problems);
  EXPECT_NE(topology.has_value(), !problems.empty());
  return topology;
}

TEST(NodeTopology, HasGpusLinksAndTheCardsThatAreNear) {
  EXPECT_EQ(parsed(dgx_h100()), (NodeTopology{8, 18, 8}));
  // Four GPUs that share their links out: six to each other one.
  const auto none = [](int, int) { return "NODE"; };
  EXPECT_EQ(parsed(table_of(
                4, 1, [](int, int) { return "NV6"; }, none)),
            (NodeTopology{4, 18, 1}));
  EXPECT_EQ(parsed(table_of(
                4, 0, [](int, int) { return "NV4"; }, none)),
            (NodeTopology{4, 12, 0}));
  // Bridges between pairs join not all of them.
  const auto bridged = [](int a, int b) { return a / 2 == b / 2 ? "NV12" : "SYS"; };
  EXPECT_EQ(parsed(table_of(8, 2, bridged, none)), (NodeTopology{8, 0, 2}));
  EXPECT_EQ(parsed("\tGPU0\tCPU Affinity\nGPU0\t X \t0-31\n"), (NodeTopology{1, 0, 0}));
  for (const char* links : {"NV0", "NV19", "NV99"}) {  // a GPU has at most 18
    EXPECT_FALSE(parsed(table_of(
        2, 0, [&](int, int) { return links; }, none)))
        << links;
  }
}

TEST(NodeTopology, HasTheSwitchesAndSocketsOfGpusWithoutNvlink) {
  const auto none = [](int, int) { return "SYS"; };
  const auto laid = [&](int gpus, const auto& way) { return parsed(table_of(gpus, 0, way, none)); };
  // Four behind each of two switches, one a socket (8 RTX 4090: NVIDIA/nccl-tests, issue 307).
  EXPECT_EQ(laid(8, [](int a, int b) { return a / 4 == b / 4 ? "PIX" : "SYS"; }),
            (NodeTopology{8, 0, 0, 4, 4}));
  EXPECT_EQ(laid(8,
                 [](int a, int b) {
                   return a / 2 == b / 2 ? "PXB" : a / 4 == b / 4 ? "NODE" : "SYS";
                 }),
            (NodeTopology{8, 0, 0, 2, 4}));
  EXPECT_EQ(laid(8, [](int, int) { return "PIX"; }), (NodeTopology{8, 0, 0}));
  EXPECT_EQ(laid(2, [](int, int) { return "SYS"; }), (NodeTopology{2, 0, 0}));
  EXPECT_EQ(
      laid(8, [](int a, int b) { return a / 2 == b / 2   ? "NV4"
                                        : a / 4 == b / 4 ? "PIX"
                                                         : "SYS"; }),
      (NodeTopology{8, 0, 0, 4, 4}));
  // Every other GPU on a socket: no consecutive numbers, nothing is said.
  EXPECT_EQ(laid(4, [](int a, int b) { return a % 2 == b % 2 ? "PHB" : "SYS"; }),
            (NodeTopology{4, 0, 0}));
}

TEST(NodeTopology, WhatIsBrokenIsToldWithItsLine) {
  const auto says = [](const std::string& text, const std::string& part) {
    Problems problems;
    EXPECT_FALSE(parse_topology(text, "topo.txt", problems));
    ASSERT_FALSE(problems.empty());
    EXPECT_NE(to_string(problems[0]).find(part), std::string::npos) << to_string(problems[0]);
  };
  says("", "topo.txt:1");
  says("no GPU here\n", "nvidia-smi topo -m");
  says("\tGPU0\tGPU1\nGPU0\t X \tNV18\n", "no row of GPU1");
  says("\tGPU0\tGPU1\nGPU0\t X \tNV18\nGPU1\tOK\t X \n", "topo.txt:3");
  says("\tGPU0\tGPU1\nGPU0\t X\nGPU1\tSYS\t X \n", "topo.txt:2");
  // Whatever is in it, nothing is fatal.
  const std::string good = dgx_h100();
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    std::string text = good;
    for (int change = 0; change < 3; ++change) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    text.resize(1 + random() % text.size());
    parsed(text);
  }
}

TEST(NodeTopology, LiesOverACluster) {
  Problems problems;
  const auto lay = [&](const char* cluster, const NodeTopology& topology) {
    return with_topology(*read_cluster_spec(cluster, problems), topology, problems);
  };
  const ClusterSpec own = *read_cluster_spec("h100-64", problems);
  EXPECT_EQ(lay("h100-64", {8, 18, 8}).intra_per_gpu, own.intra_per_gpu);
  const ClusterSpec h800 = *read_cluster_spec("h800-64", problems);
  EXPECT_EQ(lay("h800-64", {8, 8, 8}).intra_per_gpu, h800.intra_per_gpu);
  const ClusterSpec b200 = *read_cluster_spec("b200-64", problems);
  EXPECT_EQ(lay("b200-64", {8, 18, 8}).intra_per_gpu, b200.intra_per_gpu);
  const ClusterSpec few = lay("h100-64", {4, 12, 2});
  EXPECT_EQ(few.gpus_per_node, 4);
  EXPECT_EQ(few.nics_per_node, 2);
  EXPECT_EQ(few.intra_per_gpu.value, 12 * 25e9);
  EXPECT_TRUE(problems.empty());
  const ClusterSpec pcie = *read_cluster_spec("l40s-8", problems);
  EXPECT_EQ(lay("l40s-8", {4, 0, 2}).intra_per_gpu, pcie.intra_per_gpu);
  EXPECT_TRUE(problems.empty());
  const ClusterSpec switched = lay("l40s-8", {8, 0, 2, 4, 4});
  EXPECT_EQ(switched.pcie_switch, (SharedLink{4, pcie.intra_per_gpu}));
  EXPECT_EQ(switched.socket, (SharedLink{4, gb_per_s(20)}));
  EXPECT_FALSE(lay("h100-64", {8, 18, 8}).shares_within());
  EXPECT_TRUE(problems.empty());
  lay("h100-64", {8, 0, 8});
  EXPECT_EQ(problems.size(), 1u);
  lay("h100-h20-128", {8, 18, 8});
  EXPECT_EQ(problems.size(), 2u);
}

TEST_F(Explore, ATopologyThatIsDroppedBecomesTheQuestion) {
  ask(small_query());
  const QString file = folder.filePath("topo.txt");
  std::ofstream(file.toStdString()) << table_of(
      4, 2, [](int, int) { return "NV4"; }, [](int, int) { return "PIX"; });
  openFiles(window, {file});
  ASSERT_TRUE(wait_for([&] {
    return document().valid() && document().plan->cluster.gpus_per_node == 4;
  })) << document().file_problems.toStdString();
  EXPECT_EQ(document().plan->cluster.intra_per_gpu.value, 12 * 25e9);
  EXPECT_EQ(document().question.topology, file.toStdString());
  EXPECT_EQ(named<QSpinBox>(window, "GPUs per node")->value(), 4);
  // Without it the cluster is as its file says.
  named<QLineEdit>(window, "Topology")->clear();
  ASSERT_TRUE(
      wait_for([&] { return document().valid() && document().plan->cluster.gpus_per_node == 8; }));
  std::ofstream(file.toStdString()) << "GPU0\n";
  openFiles(window, {file});
  EXPECT_TRUE(document().file_problems.contains("topo.txt")) << "and nothing else changes";
  EXPECT_TRUE(document().question.topology.empty());
}

}  // namespace
}  // namespace tessera::gui
