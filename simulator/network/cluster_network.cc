#include "simulator/network/cluster_network.h"

#include <algorithm>

namespace tessera {
namespace {

constexpr std::int64_t kWays = 2;  // out, in

// Links of a node: its cards' ways, then its uplink's.
std::int64_t links_per_node(const ClusterNetwork& network) {
  return kWays * (network.cards_per_node + (network.uplinks ? 1 : 0));
}

}  // namespace

std::vector<int> ClusterNetwork::path(int source, int destination) const {
  std::vector<int> links;
  for (const std::int64_t way : {0, 1}) {
    const int rank = way == 0 ? source : destination;
    const std::int64_t node = rank / gpus_per_node, local = rank % gpus_per_node;
    const std::int64_t first = node * links_per_node(*this) + way;
    links.push_back(static_cast<int>(first + kWays * (local * cards_per_node / gpus_per_node)));
    if (uplinks) links.push_back(static_cast<int>(first + kWays * cards_per_node));
  }
  return links;
}

ClusterNetwork cluster_network(const ClusterSpec& cluster, const Calibration& calibration,
                               std::int64_t gpus) {
  ClusterNetwork network;
  network.gpus_per_node = cluster.gpus_per_node;
  const std::int64_t cards = std::max<std::int64_t>(1, cluster.nics_per_node);
  network.cards_per_node = std::min(cards, cluster.gpus_per_node);
  network.uplinks = cluster.oversubscription > 1;
  const double all =
      static_cast<double>(cards) * cluster.nic.value * calibration.inter_efficiency.value;
  const std::int64_t nodes = (gpus + network.gpus_per_node - 1) / network.gpus_per_node;
  for (std::int64_t node = 0; node < nodes; ++node) {
    for (std::int64_t way = 0; way < kWays * network.cards_per_node; ++way) {
      network.capacity.push_back(all / static_cast<double>(network.cards_per_node));
    }
    for (std::int64_t way = 0; network.uplinks && way < kWays; ++way) {
      network.capacity.push_back(all / cluster.oversubscription);
    }
  }
  return network;
}

bool shares_links(const ClusterSpec& cluster) {
  return cluster.nodes > 1 &&
         (cluster.nics_per_node < cluster.gpus_per_node || cluster.oversubscription > 1);
}

}  // namespace tessera
