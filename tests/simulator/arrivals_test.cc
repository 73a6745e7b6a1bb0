// The reshard's bytes between nodes as flows over shared cards and uplinks: equal to the closed
// form where every GPU has links of its own or all send alike, slower or faster only where links
// are shared unevenly.
#include "simulator/reshard/arrivals.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "simulator/network/cluster_network.h"
#include "simulator/network/flows.h"
#include "tests/planner/sample_requests.h"
#include "tests/simulator/sample_plans.h"

namespace tessera {
namespace {

constexpr double kCard = 1e9;

/// Two nodes of 4 GPUs, cards of 1 GB/s, all else free.
ClusterSpec two_nodes(std::int64_t cards, double oversubscription = 1) {
  ClusterSpec cluster = cluster_of(4, 2, 80);
  cluster.nics_per_node = cards;
  cluster.nic = BytesPerSecond{kCard};
  cluster.oversubscription = oversubscription;
  return cluster;
}

Transfer sent(int source, int destination, std::int64_t elements) {
  const std::array shape{elements};
  return {0, source, destination, whole(shape)};
}

std::vector<Arrival> arrivals(const std::vector<Transfer>& transfers, const ClusterSpec& cluster) {
  const std::array element{Bytes{1}};
  const Calibration free = arithmetic_only();
  const std::array ends{Machines{cluster, free}};
  return arrivals_of(transfers, element, 8, {}, ends);
}

TEST(Arrivals, AlikeBytesOfAllGpusTakeAsLongAsTheClosedFormSays) {
  for (const auto& [cards, oversubscription] :
       {std::pair{4, 1.0}, {2, 1.0}, {1, 1.0}, {4, 2.0}, {2, 4.0}}) {
    const ClusterSpec cluster = two_nodes(cards, oversubscription);
    const Calibration free = arithmetic_only();
    std::vector<Transfer> all;
    for (int rank = 0; rank < 4; ++rank) all.push_back(sent(rank, rank + 4, 1'000'000'000));
    const Seconds each = Bytes{1'000'000'000} / inter_node_bandwidth(cluster, free);
    for (const Arrival& arrival : arrivals(all, cluster)) {
      EXPECT_NEAR(arrival.seconds, each, 1e-8 * each.value) << cards << " " << oversubscription;
    }
    EXPECT_EQ(shares_links(cluster), cards < 4 || oversubscription > 1);
  }
}

TEST(Arrivals, LinksOfTheirOwnAreTheClosedFormExactly) {
  const ClusterSpec cluster = two_nodes(4);
  const auto found =
      arrivals({sent(0, 4, 3'000'000), sent(1, 4, 2'000'000), sent(1, 5, 500'000)}, cluster);
  ASSERT_EQ(found.size(), 2U);
  // GPU 4 receives 5 MB through its card; what GPU 1 sends to 5 leaves with the rest of its bytes.
  EXPECT_NEAR(found[0].seconds, 5e-3, 1e-8);
  EXPECT_NEAR(found[1].seconds, 2.5e-3, 1e-8);
}

TEST(Arrivals, ALoneSenderHasItsSharedCardToItself) {
  const ClusterSpec cluster = two_nodes(1);
  const auto lone = arrivals({sent(0, 4, 1'000'000'000)}, cluster);
  EXPECT_NEAR(lone[0].seconds, 1, 1e-8);  // the closed form gives it a quarter of the card
  const auto two = arrivals({sent(0, 4, 1'000'000'000), sent(1, 5, 1'000'000'000)}, cluster);
  EXPECT_NEAR(two[0].seconds, 2, 1e-8);  // two groups of one node share it
  EXPECT_NEAR(two[1].seconds, 2, 1e-8);
}

TEST(Arrivals, AnUplinkNarrowsWhatItsCardsSendTogether) {
  const ClusterSpec cluster = two_nodes(4, 4);  // 4 cards of 1 GB/s behind 1 GB/s
  const auto lone = arrivals({sent(0, 4, 1'000'000'000)}, cluster);
  EXPECT_NEAR(lone[0].seconds, 1, 1e-8);
  const auto both = arrivals({sent(0, 4, 1'000'000'000), sent(1, 5, 3'000'000'000)}, cluster);
  EXPECT_NEAR(both[0].seconds, 2, 1e-8);  // halves of the uplink
  EXPECT_NEAR(both[1].seconds, 4, 1e-8);  // and then all of it
}

TEST(Arrivals, NodesOfOneLeafDoNotCrossItsUplink) {
  ClusterSpec cluster = two_nodes(4, 4);
  const std::vector<Transfer> both{sent(0, 4, 1'000'000'000), sent(1, 5, 3'000'000'000)};
  cluster.nodes_per_leaf = 2;
  const auto near = arrivals(both, cluster);
  EXPECT_NEAR(near[0].seconds, 1, 1e-8);  // each card alone
  EXPECT_NEAR(near[1].seconds, 3, 1e-8);
  cluster.nodes = 3;  // the third node hangs on a leaf of its own; uplinks of 2 GB/s
  const auto far = arrivals({sent(0, 8, 2'000'000'000), sent(4, 9, 2'000'000'000)}, cluster);
  EXPECT_NEAR(far[0].seconds, 2, 1e-8);
  cluster.rails = true;  // card 0 to card 1 goes over the spine: 2 cards up by 4
  const auto crossed = arrivals({sent(0, 5, 1'000'000'000)}, cluster);
  EXPECT_NEAR(crossed[0].seconds, 2, 1e-8);
}

TEST(Arrivals, GpusWithSeveralCardsUseThemAll) {
  const ClusterSpec cluster = two_nodes(8, 2);  // two cards each, uplink of 4 GB/s
  const auto lone = arrivals({sent(0, 4, 2'000'000'000)}, cluster);
  EXPECT_NEAR(lone[0].seconds, 1, 1e-8);
}

}  // namespace
}  // namespace tessera
