#include "cost_models/spec/cluster_spec.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <string>

#include "cost_models/documents/preset.h"
#include "cost_models/documents/strict_json.h"
#include "cost_models/spec/device/device_kind.h"
#include "cost_models/spec/node_groups.h"
#include "cost_models/spec/spec_document.h"
#include "tests/cost_models/documents/malformed.h"

namespace tessera {
namespace {

constexpr char kGood[] =
    "version: 1\nname: c\ngpu: H100\nmemory_gib: 80\npeak_tflops_bf16: 989\nhbm_gb_s: 3350\n"
    "gpus_per_node: 8\nnodes: 2\nintra_node:\n  link: NVLink\n  gb_s_per_gpu_one_way: 450\n"
    "inter_node:\n  fabric: IB\n  nics_per_node: 8\n  gbit_s_per_nic: 400\n";

TEST(DeviceKind, IsToldByTheName) {
  EXPECT_TRUE(is_cpu({.name = "cpu"}));
  EXPECT_FALSE(is_cpu({.name = "H100"}));
  EXPECT_EQ(compute_capability("H200-SXM-141GB"), 90);
  EXPECT_EQ(compute_capability("GB200"), 100);
  EXPECT_EQ(compute_capability("A100-PCIE-40GB"), 80);
  EXPECT_EQ(compute_capability("L40S"), 89);
  EXPECT_EQ(compute_capability("cpu"), 0);
}

TEST(ClusterSpec, ReadsEveryFieldInItsUnit) {
  Problems problems;
  const auto cluster = parse_cluster_spec(std::string(kGood) +
                                              "price_per_gpu_hour: 2.5\noversubscription: 7\n"
                                              "nodes_per_leaf: 16\nrails: true\n",
                                          "c.yaml", problems);
  ASSERT_TRUE(cluster) << to_string(problems.at(0));
  EXPECT_EQ(cluster->name, "c");
  EXPECT_EQ(cluster->device.name, "H100");
  EXPECT_EQ(cluster->device.memory, Bytes{80LL << 30});
  EXPECT_EQ(cluster->device.peak_bf16.value, 989e12);
  EXPECT_EQ(cluster->device.hbm.value, 3350e9);
  EXPECT_EQ(cluster->gpus(), 16);
  EXPECT_EQ(cluster->intra_per_gpu.value, 450e9);
  EXPECT_EQ(cluster->nics_per_node, 8);
  EXPECT_EQ(cluster->nic.value, 50e9);  // 400 Gbit/s
  EXPECT_EQ(cluster->price_per_gpu_hour, 2.5);
  EXPECT_EQ(cluster->oversubscription, 7);
  EXPECT_EQ(cluster->nodes_per_leaf, 16);
  EXPECT_TRUE(cluster->rails);
}

TEST(ClusterSpec, BlocksNothingWhereAllNodesHangOnOneSwitch) {
  ClusterSpec cluster{.gpus_per_node = 8, .nodes = 4, .oversubscription = 3};
  EXPECT_EQ(cluster.blocking(), 3);
  cluster.nodes_per_leaf = 3;
  EXPECT_EQ(cluster.blocking(), 3);
  cluster.nodes_per_leaf = 4;
  EXPECT_EQ(cluster.blocking(), 1);
  cluster.rails = true;  // a card's leaf is not that of the card beside it
  EXPECT_EQ(cluster.blocking(), 3);
}

TEST(ClusterSpec, OneNodeNeedsNoNetwork) {
  std::string text = kGood;
  text.replace(text.find("nodes: 2"), 8, "nodes: 1");
  text.erase(text.find("inter_node"));
  Problems problems;
  const auto cluster = parse_cluster_spec(text, "c.yaml", problems);
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->nics_per_node, 0);
}

TEST(ClusterSpec, StatesWhatGpusOfANodeShareOrNothing) {
  const auto read = [](const std::string& keys) {
    Problems problems;
    const auto cluster = parse_cluster_spec(
        "version: 1\nname: n\ngpu: L40S-48GB\nmemory_gib: 44\npeak_tflops_bf16: 362\n"
        "hbm_gb_s: 864\ngpus_per_node: 8\nnodes: 1\n"
        "intra_node: {link: PCIe 4.0 x16, gb_s_per_gpu_one_way: 32" +
            keys + "}\n",
        "c.yaml", problems);
    return std::pair(cluster.value_or(ClusterSpec{}), problems);
  };
  const auto [both, none] = read(
      ", gpus_per_switch: 4, gb_s_per_switch_one_way: 32, gpus_per_socket: 4, "
      "gb_s_per_socket_one_way: 20");
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(both.pcie_switch, (SharedLink{4, gb_per_s(32)}));
  EXPECT_EQ(both.socket, (SharedLink{4, gb_per_s(20)}));
  EXPECT_TRUE(both.shares_within());
  EXPECT_FALSE(read("").first.shares_within());
  const auto [without, told] = read(", gpus_per_switch: 4");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(to_string(told[0]).find("gb_s_per_switch_one_way"), std::string::npos);
}

TEST(ClusterSpec, EveryPresetReads) {
  const auto names = preset_names("clusters", ".yaml");
  EXPECT_GE(names.size(), 21u);
  for (const std::string& name : names) {
    Problems problems;
    const auto cluster = read_cluster_spec(name, problems);
    ASSERT_TRUE(cluster) << to_string(problems.at(0));
    EXPECT_EQ(cluster->name, name);
    EXPECT_GT(cluster->device.memory, Bytes{});
  }
  Problems problems;
  EXPECT_EQ(read_cluster_spec("local-cpu", problems)->device.name, "cpu");
  EXPECT_EQ(read_cluster_spec("selene-a100", problems)->gpus(), 3072);
}

TEST(ClusterSpec, AnyClusterSurvivesItsTree) {
  EXPECT_TRUE(rc::check([] {
    const auto rate = [] { return *rc::gen::inRange(1, 1'000'000'000) / 977.0; };
    ClusterSpec cluster{.name = "n" + *rc::gen::string<std::string>()};
    // Names are UTF-8 in files; rapidcheck's strings are bytes.
    for (char& c : cluster.name) c = static_cast<char>('a' + (static_cast<unsigned char>(c) % 26));
    cluster.device = {"g", Bytes{*rc::gen::inRange<std::int64_t>(1 << 20, 1LL << 40)},
                      tflop_per_s(rate()), gb_per_s(rate())};
    cluster.gpus_per_node = *rc::gen::inRange(1, 16);
    cluster.nodes = *rc::gen::inRange(2, 4096);
    cluster.intra_per_gpu = gb_per_s(rate());
    cluster.nics_per_node = *rc::gen::inRange(1, 16);
    cluster.nic = gb_per_s(rate() / 8);
    cluster.oversubscription = 1 + rate();
    cluster.nodes_per_leaf = *rc::gen::inRange(1, 64);
    cluster.rails = *rc::gen::arbitrary<bool>();
    for (SharedLink* const link : {&cluster.pcie_switch, &cluster.socket}) {
      if (*rc::gen::arbitrary<bool>()) *link = {*rc::gen::inRange(1, 16), gb_per_s(rate())};
    }
    Problems problems;
    const std::string text = json_text(to_node(cluster));
    const auto document = parse_json(text, "c.json", problems);
    RC_ASSERT(document.has_value());
    ObjectReader reader(*document, problems);
    const ClusterSpec again = cluster_from(reader, Defaults::refused);
    RC_ASSERT(problems.empty());
    RC_ASSERT(again == cluster);
    RC_ASSERT(json_text(to_node(again)) == text);
  }));
}

TEST(ClusterSpec, UnitsSettleAfterOneRoundTripForAnyDouble) {
  EXPECT_TRUE(rc::check([] {
    const double value = *rc::gen::inRange<std::int64_t>(1, 1LL << 62) * 1e-3;
    const double written = in_unit(value, 1e9);
    RC_ASSERT(in_unit(written * 1e9, 1e9) == written);
    RC_ASSERT(std::abs(written * 1e9 - value) <= 1e-15 * value);
  }));
}

TEST(ClusterSpec, RefusesEveryMalformedFileWithItsPlaceAndReason) {
  const Edit edits[] = {
      {"gpu: H100\n", "", "1:1 (gpu)", "no 'gpu'", "a value"},
      {"gpu: H100", "gpu: 100", "3:6 (gpu)", "100", "a string"},
      {"name: c\n", "name: \"\"\n", "2:7 (name)", "\"\"", "not empty"},
      {"memory_gib: 80", "memory_gib: 0", "4:13 (memory_gib)", "0", "from 1e-06 to 1048576"},
      {"memory_gib: 80", "memory_gib: -8", "4:13 (memory_gib)", "-8", "from 1e-06 to 1048576"},
      {"memory_gib: 80", "memory_gib: 1e30", "4:13 (memory_gib)", "1e+30", "to 1048576"},
      {"memory_gib: 80", "memory_gib: 80 GiB", "4:13 (memory_gib)", "80 GiB", "a number"},
      {"memory_gib", "memory_gb", "1:1 (memory_gib)", "no 'memory_gib'", "a value"},
      {"989", "\"989\"", "5:19 (peak_tflops_bf16)", "\"989\"", "a number"},
      {"989", "989,5", "5:19 (peak_tflops_bf16)", "\"989,5\"", "a number"},
      {"hbm_gb_s: 3350", "hbm_gb_s:", "6:1 (hbm_gb_s)", "null", "a value"},
      {"gpus_per_node: 8", "gpus_per_node: 8.5", "7:16 (gpus_per_node)", "8.5", "an integer"},
      {"gpus_per_node: 8", "gpus_per_node: 0", "7:16 (gpus_per_node)", "0", "1 to 1024"},
      {"nodes: 2", "nodes: two", "8:8 (nodes)", "\"two\"", "an integer"},
      {"nodes: 2", "nodes: 99999999999", "8:8 (nodes)", "99999999999", "1 to 262144"},
      {"nodes: 2", "nodes: 010", "8:8 (nodes)", "\"010\"", "an integer"},
      {"intra_node:\n  link: NVLink\n  gb_s_per_gpu_one_way: 450\n", "intra_node: 450\n",
       "9:13 (intra_node)", "450", "a map"},
      {"  link: NVLink\n", "  link: NVLink\n  lanes: 18\n", "11:10 (intra_node.lanes)", "'lanes'",
       "a known key"},
      {"gb_s_per_gpu_one_way: 450", "gb_s_per_gpu_one_way: .inf", "11:25", ".inf", "finite"},
      {"inter_node:\n  fabric: IB\n  nics_per_node: 8\n  gbit_s_per_nic: 400\n", "",
       "1:1 (inter_node)", "no 'inter_node'", "a value"},
      {"nics_per_node: 8", "nics_per_node: 0", "14:18 (inter_node.nics_per_node)", "0",
       "from 1 to 1024"},
      {"gbit_s_per_nic: 400", "gbit_s_per_nic: [400]", "15:19 (inter_node.gbit_s_per_nic)",
       "a list of 1 items", "a number"},
      {"version: 1", "version: 2", "1:10 (version)", "2", "version 1"},
      {"version: 1", "oversubscription: 0.5", "1:19 (oversubscription)", "0.5", "from 1 to"},
      {"version: 1", "nodes_per_leaf: 0", "1:17 (nodes_per_leaf)", "0", "from 1 to 262144"},
      {"version: 1", "rails: 8", "1:8 (rails)", "8", "true or false"},
      {"version: 1", "price_per_gpu_hour: free", "1:21 (price_per_gpu_hour)", "\"free\"",
       "a number"},
      {"version: 1", "node_types: [a, b]", "1:13 (node_types)", "a list of 2 items",
       "two or more maps"},
      {"version: 1", "nodez: 1", "1:8 (nodez)", "'nodez'", "a known key"},
      {kGood, "just text", "1:1", "\"just text\"", "a map"},
      {kGood, "- a\n- b\n", "1:1", "a list of 2 items", "a map"},
  };
  expect_refused(kGood, edits, [](const std::string& text, Problems& problems) {
    return parse_cluster_spec(text, "c.yaml", problems).has_value();
  });
}

TEST(ClusterSpec, SuggestsTheKeyThatWasMeant) {
  Problems problems;
  parse_cluster_spec(std::string(kGood) + "overssubscription: 2\n", "c.yaml", problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].hint, "did you mean 'oversubscription'?");
}

TEST(ClusterWithout, OfOneNodeGpusAreMissingAndOfSeveralWholeNodes) {
  ClusterSpec cluster{.gpus_per_node = 4, .nodes = 1};
  const int two[] = {1, 3}, all[] = {0, 1, 2, 3}, twice[] = {2, 2};
  EXPECT_EQ(cluster_without(cluster, two)->gpus(), 2);
  EXPECT_EQ(cluster_without(cluster, twice)->gpus(), 3);
  EXPECT_FALSE(cluster_without(cluster, all));
  cluster.nodes = 3;
  const int one_node[] = {5, 6}, two_nodes[] = {3, 4};
  EXPECT_EQ(cluster_without(cluster, one_node)->nodes, 2);
  EXPECT_EQ(cluster_without(cluster, one_node)->gpus_per_node, 4);
  EXPECT_EQ(cluster_without(cluster, two_nodes)->nodes, 1);
}

TEST(ClusterWithout, ANodeLeavesItsOwnGroup) {
  ClusterSpec cluster{.gpus_per_node = 2};
  cluster.groups = {{.device = {.name = "slow", .peak_bf16 = FlopsPerSecond(1)}, .nodes = 1},
                    {.device = {.name = "fast", .peak_bf16 = FlopsPerSecond(2)}, .nodes = 2}};
  set_to_weakest(cluster, {0, 1});
  const int fast[] = {5}, slow[] = {0};
  const auto without_fast = cluster_without(cluster, fast);
  ASSERT_EQ(without_fast->groups.size(), 2U);
  EXPECT_EQ(without_fast->groups[1].nodes, 1);
  EXPECT_EQ(without_fast->device.name, "slow");
  const auto without_slow = cluster_without(cluster, slow);
  EXPECT_TRUE(without_slow->groups.empty()) << "one type is left";
  EXPECT_EQ(without_slow->device.name, "fast");
  EXPECT_EQ(without_slow->nodes, 2);
}

}  // namespace
}  // namespace tessera
