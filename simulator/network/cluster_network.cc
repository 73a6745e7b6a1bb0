#include "simulator/network/cluster_network.h"

#include <algorithm>

#include "cost_models/documents/check.h"
#include "cost_models/spec/enum_names.h"

namespace tessera {
namespace {

constexpr std::int64_t kWays = 2;  // out, in

constexpr auto kLinkKinds = enum_names<LinkKind>(
    {{LinkKind::card, "card"}, {LinkKind::uplink, "uplink"}, {LinkKind::port, "port"}});

std::int64_t card_links(const ClusterNetwork& network) {
  return kWays * network.cards_per_node * static_cast<std::int64_t>(network.working.size());
}

std::int64_t card_of(const ClusterNetwork& network, int rank) {
  const std::int64_t node = rank / network.gpus_per_node, local = rank % network.gpus_per_node;
  return local * network.working[static_cast<std::size_t>(node)] / network.gpus_per_node;
}

/// The leaf switch that a GPU's card hangs on; switches of one leaf's rails are numbered in a row.
std::int64_t switch_of(const ClusterNetwork& network, int rank) {
  const std::int64_t leaf = rank / network.gpus_per_node / network.nodes_per_leaf;
  return network.rails ? leaf * network.cards_per_node + card_of(network, rank) : leaf;
}

}  // namespace

std::string_view name_of(LinkKind kind) { return kLinkKinds[kind]; }

std::vector<int> ClusterNetwork::path(int source, int destination) const {
  if (source / gpus_per_node == destination / gpus_per_node) {
    return {port(source, false), port(destination, true)};
  }
  const bool over_spine =
      uplinks && (nodes_per_leaf == 1 || switch_of(*this, source) != switch_of(*this, destination));
  std::vector<int> links;
  for (const std::int64_t way : {0, 1}) {
    const int rank = way == 0 ? source : destination;
    const std::int64_t node = rank / gpus_per_node;
    links.push_back(static_cast<int>(kWays * (node * cards_per_node + card_of(*this, rank)) + way));
    if (over_spine) {
      links.push_back(static_cast<int>(card_links(*this) + kWays * switch_of(*this, rank) + way));
    }
  }
  return links;
}

int ClusterNetwork::port(int rank, bool in) const {
  return static_cast<int>(capacity.size()) + static_cast<int>(kWays) * rank + (in ? 1 : 0);
}

std::vector<int> ClusterNetwork::ranks_of(int link) const {
  if (is_port(link)) {
    return {static_cast<int>((link - static_cast<std::int64_t>(capacity.size())) / kWays)};
  }
  const bool card = kind(link) == LinkKind::card;
  const std::int64_t number = (card ? link : link - card_links(*this)) / kWays;
  const std::int64_t leaf = rails ? number / cards_per_node : number;
  const std::int64_t first = card ? number / cards_per_node : leaf * nodes_per_leaf;
  const std::int64_t end = first + (card ? 1 : nodes_per_leaf);
  std::vector<int> ranks;
  for (std::int64_t rank = first * gpus_per_node; rank < std::min(gpus, end * gpus_per_node);
       ++rank) {
    const int gpu = static_cast<int>(rank);
    const std::int64_t node = rank / gpus_per_node;
    const bool over = card ? node * cards_per_node + card_of(*this, gpu) == number
                           : switch_of(*this, gpu) == number;
    if (over) ranks.push_back(gpu);
  }
  return ranks;
}

double ClusterNetwork::rate(int link) const {
  return is_port(link) ? port_rate : capacity[static_cast<std::size_t>(link)];
}

LinkKind ClusterNetwork::kind(int link) const {
  if (is_port(link)) return LinkKind::port;
  return link < card_links(*this) ? LinkKind::card : LinkKind::uplink;
}

std::string ClusterNetwork::name(int link) const {
  const auto words = [&](std::int64_t first) {
    return std::pair((link - first) / kWays, (link - first) % kWays == 0 ? ", out" : ", in");
  };
  switch (kind(link)) {
    case LinkKind::port: {
      const auto [gpu, way] = words(static_cast<std::int64_t>(capacity.size()));
      return "GPU " + std::to_string(gpu) + way;
    }
    case LinkKind::card: {
      const auto [card, way] = words(0);
      return "node " + std::to_string(card / cards_per_node) + ", card " +
             std::to_string(card % cards_per_node) + way;
    }
    case LinkKind::uplink: {
      const auto [leaf, way] = words(card_links(*this));
      if (!rails) return "leaf " + std::to_string(leaf) + way;
      return "leaf " + std::to_string(leaf / cards_per_node) + ", rail " +
             std::to_string(leaf % cards_per_node) + way;
    }
  }
  return {};
}

ClusterNetwork cluster_network(const ClusterSpec& cluster, const Calibration& calibration,
                               std::int64_t gpus, std::span<const std::int64_t> lost_card_of) {
  ClusterNetwork network;
  network.gpus = gpus;
  network.gpus_per_node = cluster.gpus_per_node;
  const std::int64_t cards = std::max<std::int64_t>(1, cluster.nics_per_node);
  network.cards_per_node = std::min(cards, cluster.gpus_per_node);
  network.nodes_per_leaf = cluster.nodes_per_leaf;
  network.rails = cluster.rails;
  network.uplinks = cluster.blocking() > 1;
  network.port_rate = cluster.intra_per_gpu.value;
  const std::int64_t nodes = (gpus + network.gpus_per_node - 1) / network.gpus_per_node;
  network.leaves = (nodes + network.nodes_per_leaf - 1) / network.nodes_per_leaf;
  network.working.assign(static_cast<std::size_t>(nodes), network.cards_per_node);
  for (const std::int64_t node : lost_card_of) {
    if (node < nodes) --network.working[static_cast<std::size_t>(node)];
  }
  const double all =
      static_cast<double>(cards) * cluster.nic.value * calibration.inter_efficiency.value;
  const double card = all / static_cast<double>(network.cards_per_node);
  for (const std::int64_t left : network.working) {
    TESSERA_CHECK(left > 0);
    network.capacity.insert(network.capacity.end(),
                            static_cast<std::size_t>(kWays * network.cards_per_node), card);
  }
  if (!network.uplinks) return network;
  const std::int64_t switches = network.leaves * (network.rails ? network.cards_per_node : 1);
  const double uplink = static_cast<double>(network.nodes_per_leaf) * (network.rails ? card : all) /
                        cluster.oversubscription;
  network.capacity.insert(network.capacity.end(), static_cast<std::size_t>(kWays * switches),
                          uplink);
  return network;
}

bool shares_links(const ClusterSpec& cluster, std::span<const std::int64_t> lost_card_of) {
  return cluster.nodes > 1 && (cluster.nics_per_node < cluster.gpus_per_node ||
                               cluster.blocking() > 1 || !lost_card_of.empty());
}

}  // namespace tessera
