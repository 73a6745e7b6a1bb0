// What an algorithm or protocol of NCCL's that is asked for does to collectives, against NCCL's own
// printed table and bandwidths that others measured; and how it is asked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "cost_models/collective.h"
#include "cost_models/documents/problem.h"
#include "cost_models/fit/derived_calibration.h"
#include "cost_models/fit/what_if.h"

namespace tessera {
namespace {

ClusterSpec hgx(int nodes, const std::string& gpu = "H200-SXM-141GB") {
  ClusterSpec cluster;
  cluster.device.name = gpu;
  cluster.intra_link = "NVLink4 + NVSwitch";
  cluster.intra_per_gpu = gb_per_s(450);
  cluster.gpus_per_node = 8;
  cluster.nodes = nodes;
  cluster.nics_per_node = 8;
  cluster.nic = gb_per_s(50);
  return cluster;
}

Calibration h100() {
  Problems problems;
  return find_calibration("h100", problems).value();
}

using Words = std::vector<std::string>;

/// What a collective takes with `words` over what it takes without.
double slower(const Words& words, Collective collective, double bytes, GroupShape group) {
  const ClusterSpec cluster = hgx(group.nodes);
  const Calibration chosen = h100();
  Calibration asked = chosen;
  Problems problems;
  EXPECT_TRUE(set_nccl(cluster, asked, words, problems).empty());
  EXPECT_TRUE(problems.empty());
  return collective_seconds(collective, Traffic{bytes}, group, cluster, asked).value /
         collective_seconds(collective, Traffic{bytes}, group, cluster, chosen).value;
}

TEST(NcclAsked, SmallBuffersTakeAsMuchLongerAsNcclsTableSays) {
  // Microseconds of two ranks on two nodes in NCCL 2.29.7's table (tuning_test.cc); NCCL's own
  // choice is the least of them.
  const auto sum = [](const Words& words) {
    return slower(words, Collective::all_reduce, 1, {2, 2});
  };
  EXPECT_NEAR(sum({"NCCL_ALGO=Tree"}), 16.8 / 16.6, 1e-4);
  EXPECT_NEAR(sum({"NCCL_ALGO=tree", "NCCL_PROTO=simple"}), 36.4 / 16.6, 1e-4);
  EXPECT_NEAR(sum({"NCCL_PROTO=LL128"}), 31.0 / 16.6, 1e-4);
  EXPECT_NEAR(sum({"NCCL_ALGO=Ring"}), 1, 1e-12);
  EXPECT_NEAR(slower({"NCCL_PROTO=LL128"}, Collective::all_gather, 1, {2, 2}), 22.5 / 11.6, 1e-4);
  EXPECT_NEAR(slower({"NCCL_PROTO=Simple"}, Collective::reduce_scatter, 1, {2, 2}), 22.4 / 11.6,
              1e-4);
}

TEST(NcclAsked, LargeBuffersTakeAsMuchLongerAsWasMeasured) {
  // All-reduces of 8 GiB on eight H200: 480 GB/s by NVLS, 367.2 as a ring (tuning_test.cc).
  const double bytes = 8.0 * (1 << 30);
  EXPECT_NEAR(slower({"NCCL_ALGO=Ring"}, Collective::all_reduce, bytes, {8, 1}), 480 / 367.2, 0.05);
  EXPECT_NEAR(slower({"NCCL_ALGO=NVLS"}, Collective::all_reduce, bytes, {8, 1}), 1, 1e-12);
}

TEST(NcclAsked, CollectivesWithoutAChoiceKeepTheirTime) {
  const Words tree{"NCCL_ALGO=Tree"}, both{"NCCL_ALGO=Tree", "NCCL_PROTO=LL"};
  for (const Collective one :
       {Collective::all_to_all, Collective::broadcast, Collective::send_receive}) {
    EXPECT_EQ(slower(both, one, 1e8, {8, 1}), 1);
  }
  EXPECT_EQ(slower(tree, Collective::all_gather, 1e8, {16, 2}), 1);  // has rings alone
  EXPECT_GT(slower(tree, Collective::all_reduce, 1e9, {8, 1}), 1.1);
}

TEST(NcclAsked, TakesItsNamesAndLeavesTheRest) {
  Calibration calibration = h100();
  Problems problems;
  const Words words{"dispatch_s=1e-5", "NCCL_ALGO=Tree", "NCCL_PROTO=LL128", "NCCL_ALGOS=Tree"};
  EXPECT_THAT(set_nccl(hgx(2), calibration, words, problems),
              testing::ElementsAre("dispatch_s=1e-5", "NCCL_ALGOS=Tree"));
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(calibration.nccl, (NcclChoice{NcclAlgorithm::tree, NcclProtocol::ll128}));
}

TEST(NcclAsked, RefusesWithPlaceWhatWasFoundAndWhatWasExpected) {
  using Row = std::tuple<Words, std::string, std::string>;
  for (const auto& [words, gpu, told] : std::vector<Row>{
           {{"NCCL_ALGO=PAT"},
            "H200-SXM-141GB",
            "--set:NCCL_ALGO: found 'PAT', expected Ring, Tree, NVLS or NVLSTree"},
           {{"NCCL_ALGO"},
            "H200-SXM-141GB",
            "--set:NCCL_ALGO: found '', expected Ring, Tree, NVLS or NVLSTree"},
           {{"NCCL_PROTO=Ring"},
            "H200-SXM-141GB",
            "--set:NCCL_PROTO: found 'Ring', expected LL, LL128 or Simple"},
           {{"NCCL_PROTO=LL", "NCCL_PROTO=LL128"},
            "H200-SXM-141GB",
            "--set:NCCL_PROTO: found 'NCCL_PROTO=LL128', expected a name that no --set before gave "
            "(one value for each)"},
           {{"NCCL_PROTO=LL"},
            "L40S",
            "--set:NCCL_PROTO: found 'L40S' over 'NVLink4 + NVSwitch', expected NVLink between "
            "GPUs "
            "from A100 to GB300 (NCCL's model knows no others)"},
       }) {
    Calibration calibration = h100();
    Problems problems;
    set_nccl(hgx(1, gpu), calibration, words, problems);
    ASSERT_EQ(problems.size(), 1U) << told;
    EXPECT_EQ(to_string(problems[0]), told);
  }
}

}  // namespace
}  // namespace tessera
