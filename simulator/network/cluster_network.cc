#include "simulator/network/cluster_network.h"

#include <algorithm>
#include <limits>

#include "cost_models/collective.h"
#include "cost_models/documents/check.h"
#include "cost_models/spec/enum_names.h"

namespace tessera {
namespace {

constexpr std::int64_t kWays = 2;  // out, in

constexpr auto kLinkKinds = enum_names<LinkKind>({{LinkKind::card, "card"},
                                                  {LinkKind::uplink, "uplink"},
                                                  {LinkKind::pcie_switch, "switch"},
                                                  {LinkKind::socket, "socket"},
                                                  {LinkKind::port, "port"}});

std::int64_t card_links(const ClusterNetwork& network) {
  return kWays * network.cards_per_node * static_cast<std::int64_t>(network.working.size());
}

std::int64_t uplinks(const ClusterNetwork& network) {
  if (!network.uplinks) return 0;
  return kWays * network.leaves * (network.rails ? network.cards_per_node : 1);
}

/// What GPUs of a node share on the way to one another: how many, and the first of such links.
struct Shared {
  std::int64_t gpus = 0, per_node = 0, first = 0;
  std::int64_t number(std::int64_t node, std::int64_t place) const {
    return node * per_node + place / gpus;
  }
};

Shared shared_of(const ClusterNetwork& network, LinkKind kind) {
  const auto all = [&](std::int64_t gpus) {
    return gpus == 0 ? 0 : (network.gpus_per_node + gpus - 1) / gpus;
  };
  const std::int64_t switches = all(network.gpus_per_switch),
                     sockets = all(network.gpus_per_socket);
  const std::int64_t first = card_links(network) + uplinks(network);
  const auto nodes = static_cast<std::int64_t>(network.working.size());
  if (kind == LinkKind::pcie_switch) return {network.gpus_per_switch, switches, first};
  return {network.gpus_per_socket, sockets, first + kWays * switches * nodes};
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
    std::vector<int> links{port(source, false), port(destination, true)};
    const std::int64_t node = source / gpus_per_node;
    for (const LinkKind kind : {LinkKind::pcie_switch, LinkKind::socket}) {
      const Shared shared = shared_of(*this, kind);
      if (shared.gpus == 0) continue;
      const std::int64_t from = shared.number(node, source % gpus_per_node);
      const std::int64_t to = shared.number(node, destination % gpus_per_node);
      if (from == to) continue;
      links.push_back(static_cast<int>(shared.first + kWays * from));
      links.push_back(static_cast<int>(shared.first + kWays * to + 1));
    }
    return links;
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
  if (is_within(link)) {
    const Shared shared = shared_of(*this, kind(link));
    const std::int64_t number = (link - shared.first) / kWays;
    const std::int64_t node = number / shared.per_node;
    const std::int64_t first = node * gpus_per_node + number % shared.per_node * shared.gpus;
    const std::int64_t end = std::min({first + shared.gpus, (node + 1) * gpus_per_node, gpus});
    std::vector<int> behind;
    for (std::int64_t rank = first; rank < end; ++rank) behind.push_back(static_cast<int>(rank));
    return behind;
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
  if (link < card_links(*this)) return LinkKind::card;
  if (link < card_links(*this) + tessera::uplinks(*this)) return LinkKind::uplink;
  return link < shared_of(*this, LinkKind::socket).first ? LinkKind::pcie_switch : LinkKind::socket;
}

bool ClusterNetwork::is_within(int link) const {
  return link >= card_links(*this) + tessera::uplinks(*this);
}

std::vector<double> ClusterNetwork::flow_capacity() const {
  std::vector<double> all = capacity;
  // Nothing crosses the cards of a cluster that states no network.
  std::replace(all.begin(), all.end(), 0.0, std::numeric_limits<double>::infinity());
  if (shares_within()) all.resize(static_cast<std::size_t>(links()), kReachedRate * port_rate);
  return all;
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
    case LinkKind::pcie_switch:
    case LinkKind::socket: {
      const Shared shared = shared_of(*this, kind(link));
      const auto [number, way] = words(shared.first);
      return "node " + std::to_string(number / shared.per_node) + ", " +
             std::string(name_of(kind(link))) + " " + std::to_string(number % shared.per_node) +
             way;
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
  network.gpus_per_switch = cluster.pcie_switch.gpus;
  network.gpus_per_socket = cluster.socket.gpus;
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
  const auto add = [&](std::int64_t links, double rate) {
    network.capacity.insert(network.capacity.end(), static_cast<std::size_t>(links), rate);
  };
  add(uplinks(network), static_cast<double>(network.nodes_per_leaf) * (network.rails ? card : all) /
                            cluster.oversubscription);
  for (const LinkKind kind : {LinkKind::pcie_switch, LinkKind::socket}) {
    const SharedLink& link = kind == LinkKind::socket ? cluster.socket : cluster.pcie_switch;
    add(kWays * shared_of(network, kind).per_node * nodes, kReachedRate * link.rate.value);
  }
  return network;
}

bool shares_links(const ClusterSpec& cluster, std::span<const std::int64_t> lost_card_of) {
  return cluster.shares_within() ||
         (cluster.nodes > 1 && (cluster.nics_per_node < cluster.gpus_per_node ||
                                cluster.blocking() > 1 || !lost_card_of.empty()));
}

}  // namespace tessera
