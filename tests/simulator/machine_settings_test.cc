// Networks and machines set by hand: what is taken, what is refused.
#include "simulator/network/machine_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/sample_requests.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Outcome {
  ClusterSpec cluster = cluster_of(8, 4, 80);
  MachineSettings settings;
  std::vector<std::string> others;
  Problems problems;
};

Outcome set(const std::vector<std::string>& words) {
  Outcome outcome;
  outcome.others = set_machine(outcome.cluster, outcome.settings, words, outcome.problems);
  return outcome;
}

TEST(MachineSettings, TakeWhatTheyNameAndLeaveTheRest) {
  const Outcome all = set({"nics_per_node=2", "dispatch_s=1e-5", "nic_bytes_per_s=25e9",
                           "oversubscription=4", "nodes_per_leaf=2", "rails=1", "lost_nics/3=1",
                           "slow_rank/31=1.5", "slow_rank/0=2", "all_gather/8x1=1.5"});
  EXPECT_TRUE(all.problems.empty());
  EXPECT_THAT(all.others, ElementsAre("dispatch_s=1e-5", "all_gather/8x1=1.5"));
  EXPECT_EQ(all.cluster.nics_per_node, 2);
  EXPECT_EQ(all.cluster.nic.value, 25e9);
  EXPECT_EQ(all.cluster.oversubscription, 4);
  EXPECT_EQ(all.cluster.nodes_per_leaf, 2);
  EXPECT_TRUE(all.cluster.rails);
  EXPECT_THAT(all.settings.lost_card_of, ElementsAre(3));
  EXPECT_EQ(all.settings.slow_ranks, (std::map<int, double>{{0, 2.0}, {31, 1.5}}));
}

TEST(MachineSettings, TakeTheLinksThatGpusOfANodeShare) {
  const Outcome both = set({"gpus_per_switch=2", "gb_s_per_switch_one_way=40",
                            "gb_s_per_socket_one_way=12.5", "gpus_per_socket=4"});
  EXPECT_TRUE(both.problems.empty());
  EXPECT_TRUE(both.others.empty());
  EXPECT_EQ(both.cluster.pcie_switch, (SharedLink{2, BytesPerSecond{40e9}}));
  EXPECT_EQ(both.cluster.socket, (SharedLink{4, BytesPerSecond{12.5e9}}));
  EXPECT_TRUE(set({"gpus_per_switch=0"}).problems.empty());
  // Either alone leaves the other as the cluster has it.
  ClusterSpec cluster = both.cluster;
  MachineSettings settings;
  Problems problems;
  set_machine(cluster, settings, std::vector<std::string>{"gpus_per_switch=4"}, problems);
  set_machine(cluster, settings, std::vector<std::string>{"gb_s_per_socket_one_way=1"}, problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(cluster.pcie_switch, (SharedLink{4, BytesPerSecond{40e9}}));
  EXPECT_EQ(cluster.socket, (SharedLink{4, BytesPerSecond{1e9}}));
}

TEST(MachineSettings, RefuseWhatNoMachineHas) {
  for (const auto& [word, place, expected] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"nics_per_node=0", "nics_per_node", "from 1 to 1024"},
           {"nics_per_node=1.5", "nics_per_node", "whole number"},
           {"nic_bytes_per_s=-1", "nic_bytes_per_s", "at least 1"},
           {"nic_bytes_per_s=nan", "nic_bytes_per_s", "at least 1"},
           {"oversubscription=0.5", "oversubscription", "from 1"},
           {"oversubscription", "oversubscription", "from 1"},
           {"rails=2", "rails", "0 or 1"},
           {"gpus_per_switch=-1", "gpus_per_switch", "from 0"},
           {"gpus_per_socket=1.5", "gpus_per_socket", "whole number"},
           {"gb_s_per_socket_one_way=0", "gb_s_per_socket_one_way", "from 1e-6"},
           {"gpus_per_switch=2", "gpus_per_switch", "gb_s_per_switch_one_way=VALUE"},
           {"gb_s_per_socket_one_way=9", "gb_s_per_socket_one_way", "gpus_per_socket=VALUE"},
           {"lost_nics=1", "lost_nics", "from 0 to 3"},
           {"lost_nics/4=1", "lost_nics/4", "from 0 to 3"},
           {"lost_nics/0=8", "lost_nics/0", "fewer cards than the 8"},
           {"slow_rank/32=2", "slow_rank/32", "from 0 to 31"},
           {"slow_rank/-1=2", "slow_rank/-1", "from 0 to 31"},
           {"slow_rank/0=0", "slow_rank/0", "a factor"}}) {
    const Outcome refused = set({word});
    ASSERT_EQ(refused.problems.size(), 1U) << word;
    EXPECT_EQ(refused.problems[0].file, "--set");
    EXPECT_EQ(refused.problems[0].place, place);
    EXPECT_THAT(refused.problems[0].expected, HasSubstr(expected));
  }
  EXPECT_EQ(set({"rails=1", "rails=0"}).problems.size(), 1U);
  EXPECT_EQ(set({"rails/1=1"}).others.size(), 1U);  // is nobody's here
}

}  // namespace
}  // namespace tessera
