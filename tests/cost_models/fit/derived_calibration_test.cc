// Constants of devices that nobody calibrated, derived from those of the nearest one.
#include "cost_models/fit/derived_calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cost_models/calibration.h"
#include "cost_models/documents/problem.h"
#include "cost_models/spec/cluster_spec.h"
#include "cost_models/spec/units.h"

namespace tessera {
namespace {

using testing::HasSubstr;

TEST(DerivedCalibration, TakesRatesFromTheClusterAndRatiosFromTheNearestDevice) {
  ClusterSpec cluster;
  cluster.device = {"RTX 3090", from_gib(24), tflop_per_s(71), gb_per_s(936)};
  cluster.intra_per_gpu = gb_per_s(16);
  cluster.gpus_per_node = 8;
  cluster.nodes = 1;
  Problems problems;
  const auto derived = calibration_for_cluster(cluster, problems);
  const auto a100 = find_calibration("a100", problems);
  ASSERT_TRUE(derived && a100);
  EXPECT_DOUBLE_EQ(derived->matmul_flops.value, 71e12);
  EXPECT_DOUBLE_EQ(derived->memory_bandwidth.value, 936e9);
  EXPECT_EQ(derived->matmul, a100->matmul);
  EXPECT_GE(derived->matmul_flops.error, 0.15);
  EXPECT_THAT(derived->name, HasSubstr("derived from a100"));
  EXPECT_NEAR(derived->collectives[0].bandwidth, a100->collectives[0].bandwidth * 16 / 300, 1);
}

// 1822 and 1745 TFLOP/s by one measurement, where the data sheets promise 2500 and 2250.
TEST(DerivedCalibration, TakesProductsOfGraceBlackwellAsTheyWereMeasured) {
  ClusterSpec cluster;
  cluster.device = {"GB200-NVL72-186GB", from_gib(186), tflop_per_s(2500), gb_per_s(8000)};
  cluster.intra_per_gpu = gb_per_s(900);
  cluster.gpus_per_node = 64;
  cluster.nodes = 1;
  Problems problems;
  const auto grace = calibration_for_cluster(cluster, problems);
  const auto b200 = find_calibration("b200", problems);
  ASSERT_TRUE(grace && b200);
  EXPECT_DOUBLE_EQ(grace->matmul_flops.value, b200->matmul_flops.value * 1822 / 1745);
  cluster.device.name = "GB300-NVL72-279GB";  // nobody measured it: the sheet's
  EXPECT_DOUBLE_EQ(calibration_for_cluster(cluster, problems)->matmul_flops.value, 2500e12);
}

TEST(DerivedCalibration, LeavesShippedDevicesAlone) {
  Problems problems;
  const auto cluster = read_cluster_spec("h100-8", problems);
  ASSERT_TRUE(cluster.has_value());
  EXPECT_EQ(calibration_for_cluster(*cluster, problems), find_calibration("h100", problems));
}

// What a file states of a known GPU counts, not its name alone.
TEST(DerivedCalibration, FollowsTheFiguresOfAClusterOfAShippedDevice) {
  Problems problems;
  auto cluster = read_cluster_spec("h100-8", problems);
  const auto h100 = find_calibration("h100", problems);
  ASSERT_TRUE(cluster && h100);
  cluster->device.peak_bf16 = tflop_per_s(98.9);
  cluster->device.hbm = gb_per_s(1675);
  cluster->intra_per_gpu = gb_per_s(45);
  const auto scaled = calibration_for_cluster(*cluster, problems);
  ASSERT_TRUE(scaled);
  EXPECT_NEAR(scaled->matmul_flops.value, h100->matmul_flops.value / 10, 1e6);
  EXPECT_NEAR(scaled->memory_bandwidth.value, h100->memory_bandwidth.value / 2, 1e3);
  EXPECT_NEAR(scaled->stream_bandwidth.value, h100->stream_bandwidth.value / 2, 1e3);
  EXPECT_NEAR(scaled->collectives[0].bandwidth, h100->collectives[0].bandwidth / 10, 1);
  EXPECT_GE(scaled->matmul_flops.error, 0.15);
  EXPECT_EQ(scaled->name,
            "h100, scaled to the cluster's figures: peak x0.1, memory rate x0.5, link x0.1");
  EXPECT_THAT(scaled->note, HasSubstr("peak x0.1"));
}

}  // namespace
}  // namespace tessera
