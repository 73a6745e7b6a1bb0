// NCCL's tuning model against NCCL's own printed table, the choices that it logged, and bandwidths
// that others measured.
#include "cost_models/nccl/tuning.h"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

namespace tessera {
namespace {

constexpr NcclMachine kHgxH200{90, gb_per_s(450), true, 8, gb_per_s(50)};
constexpr NcclMachine kHgxH100 = kHgxH200;
constexpr NcclMachine kHgxA100{80, gb_per_s(300), false, 8, gb_per_s(25)};
constexpr NcclMachine kHgxB200{100, gb_per_s(900), true, 8, gb_per_s(50)};

constexpr NcclAlgorithm kTree = NcclAlgorithm::tree, kRing = NcclAlgorithm::ring;
constexpr NcclProtocol kLl = NcclProtocol::ll, kLl128 = NcclProtocol::ll128;
constexpr NcclProtocol kSimple = NcclProtocol::simple;
constexpr Traffic kMiB{1 << 20};

TEST(NcclTuning, LatenciesAreThoseOfNcclsTable) {
  // NCCL 2.29.7's table of two ranks on two nodes without a latency of cards (log of NCCL_DEBUG
  // with subsystem TUNING in yunwei37/nccl-eBPF, experiment 1): microseconds.
  using Row = std::tuple<NcclCollective, NcclAlgorithm, NcclProtocol, double>;
  for (const auto& [collective, algorithm, protocol, microseconds] :
       std::vector<Row>{{NcclCollective::all_reduce, kTree, kLl, 16.8},
                        {NcclCollective::all_reduce, kTree, kLl128, 31.0},
                        {NcclCollective::all_reduce, kTree, kSimple, 36.4},
                        {NcclCollective::all_reduce, kRing, kLl, 16.6},
                        {NcclCollective::all_reduce, kRing, kLl128, 31.0},
                        {NcclCollective::all_reduce, kRing, kSimple, 36.4},
                        {NcclCollective::all_gather, kRing, kLl, 11.6},
                        {NcclCollective::all_gather, kRing, kLl128, 22.5},
                        {NcclCollective::all_gather, kRing, kSimple, 22.4},
                        {NcclCollective::reduce_scatter, kRing, kLl, 11.6},
                        {NcclCollective::reduce_scatter, kRing, kLl128, 22.5},
                        {NcclCollective::reduce_scatter, kRing, kSimple, 22.4}}) {
    const auto seconds = nccl_time(collective, Traffic{1}, 2, 2, kHgxH100, algorithm, protocol);
    ASSERT_TRUE(seconds);
    EXPECT_NEAR(seconds->value * 1e6, microseconds, 1e-3);
  }
}

TEST(NcclTuning, ChoosesWhatNcclLoggedOnEightH200) {
  // NCCL 2.27.7 on eight H200 runs all-reduces up to 1 MiB as a ring with LL, from 2 MiB on by
  // NVLS; all-gathers and reduce-scatters stay rings.
  for (Traffic bytes{32 << 10}; bytes <= 16384 * kMiB; bytes *= 2) {
    const NcclPick pick = nccl_pick(NcclCollective::all_reduce, bytes, 8, 1, kHgxH200);
    EXPECT_EQ(pick.algorithm, bytes <= kMiB ? kRing : NcclAlgorithm::nvls) << bytes.value;
    EXPECT_EQ(pick.protocol, bytes <= kMiB ? kLl : kSimple) << bytes.value;
    for (const auto other : {NcclCollective::all_gather, NcclCollective::reduce_scatter}) {
      EXPECT_EQ(nccl_pick(other, bytes, 8, 1, kHgxH200).algorithm, kRing) << bytes.value;
    }
  }
  // Of one node's GPUs four stay a ring, five and more do not (NVIDIA/nccl#1455, on H100).
  for (const int gpus : {2, 3, 4, 5, 6, 7, 8}) {
    const NcclPick pick = nccl_pick(NcclCollective::all_reduce, Traffic{8e9}, gpus, 1, kHgxH100);
    EXPECT_EQ(pick.algorithm, gpus <= 4 ? kRing : NcclAlgorithm::nvls) << gpus;
  }
}

TEST(NcclTuning, BandwidthsAreThoseThatWereMeasured) {
  // GB/s of the bus at 8 GiB and more: the network benchmarks of stas00/ml-engineering (H200, A100,
  // B200), NVIDIA/nccl#1374 (H800).
  using Row = std::tuple<NcclMachine, NcclAlgorithm, double, double>;
  for (const auto& [machine, algorithm, measured, within] : std::vector<Row>{
           {kHgxH200, NcclAlgorithm::nvls, 480.0, 0.02},
           {kHgxH200, kRing, 367.2, 0.03},
           {kHgxA100, kRing, 234.9, 0.03},
           {kHgxB200, NcclAlgorithm::nvls, 838, 0.12},
           {kHgxB200, kRing, 682, 0.06},
           {{90, gb_per_s(200), true, 8, gb_per_s(50)}, NcclAlgorithm::nvls, 215, 0.15}}) {
    const Traffic bytes = 8192 * kMiB;
    const auto seconds =
        nccl_time(NcclCollective::all_reduce, bytes, 8, 1, machine, algorithm, kSimple);
    ASSERT_TRUE(seconds);
    const double bus = bytes / *seconds * 2 * 7 / 8 / gb_per_s(1);
    EXPECT_NEAR(bus / measured, 1, within) << machine.generation << " " << bus;
  }
}

TEST(NcclTuning, TreesBeatRingsWhereNodesAreManyAndBuffersSmall) {
  const auto seconds = [](int nodes, Traffic bytes, NcclAlgorithm algorithm) {
    return nccl_pick(NcclCollective::all_reduce, bytes, 8 * nodes, nodes, kHgxA100,
                     {.algorithm = algorithm})
        .time;
  };
  // A ring's latency grows with the ranks, a tree's with the logarithm of the nodes.
  EXPECT_LT(seconds(64, kMiB, kTree), seconds(64, kMiB, kRing));
  EXPECT_LT(seconds(2, 4096 * kMiB, kRing), seconds(2, 4096 * kMiB, kTree));
  EXPECT_GT(seconds(64, Traffic{64}, kRing) / seconds(2, Traffic{64}, kRing), 20);
  EXPECT_LT(seconds(64, Traffic{64}, kTree) / seconds(2, Traffic{64}, kTree), 6);
}

TEST(NcclTuning, WhatIsSetLeavesWhatTheCollectiveHas) {
  const auto pick = [](NcclCollective collective, NcclChoice set, const NcclMachine& machine) {
    return nccl_pick(collective, 64 * kMiB, 8, 1, machine, set);
  };
  EXPECT_EQ(pick(NcclCollective::all_reduce, {.algorithm = kTree}, kHgxH100).algorithm, kTree);
  EXPECT_EQ(pick(NcclCollective::all_gather, {.algorithm = kTree}, kHgxH100).algorithm, kRing);
  EXPECT_EQ(pick(NcclCollective::all_reduce, {.protocol = kLl}, kHgxH100).protocol, kLl);
  EXPECT_FALSE(nccl_time(NcclCollective::all_reduce, Traffic{1e9}, 8, 1, kHgxA100,
                         NcclAlgorithm::nvls, kSimple));
  const Seconds best = pick(NcclCollective::all_reduce, {}, kHgxH100).time;
  for (const char* const name : {"Tree", "RING", "nvls"}) {
    EXPECT_GE(pick(NcclCollective::all_reduce, {.algorithm = nccl_algorithm(name)}, kHgxH100).time,
              best);
  }
  EXPECT_FALSE(nccl_algorithm("PAT"));
  EXPECT_EQ(nccl_protocol("ll128"), kLl128);
}

TEST(NcclTuning, KnowsMachinesByTheirGpusAndLinks) {
  ClusterSpec cluster;
  cluster.device.name = "H100-SXM-80GB";
  cluster.intra_link = "NVLink4 + NVSwitch";
  cluster.intra_per_gpu = gb_per_s(450);
  cluster.nics_per_node = 8;
  cluster.nic = gb_per_s(50);
  const auto machine = nccl_machine(cluster);
  ASSERT_TRUE(machine);
  EXPECT_EQ(machine->generation, 90);
  EXPECT_TRUE(machine->multicast);
  cluster.intra_link = "PCIe 5";
  EXPECT_FALSE(nccl_machine(cluster));
  cluster.intra_link = "NVLink";
  cluster.device.name = "cpu";
  EXPECT_FALSE(nccl_machine(cluster));
}

}  // namespace
}  // namespace tessera
