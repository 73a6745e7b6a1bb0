// The links of a cluster as flows share them: network cards, uplinks of leaf switches, and the
// GPUs' ports to the fabric of their node.
//
// A plain value made of a ClusterSpec and the calibration's efficiency; rates in bytes per second,
// one way, ways apart. GPU g of a node uses card g * cards / GPUs of those that work, and
// every card that is its own where there are more cards than GPUs. Nodes hang on leaf switches,
// whose uplinks to the spine carry their cards' rate / oversubscription each way: by default every
// node has an uplink of its own (that is the graph of ReshardBound, cost_models/reshard/
// reshard_bound.h), with rails each card of a node hangs on a leaf of its own number. Where a
// cluster states them, GPUs of a node share uplinks of PCIe switches and links of sockets on the
// way to one another, and what a GPU sends at once shares its port. Links are numbered from 0,
// ports follow them: every GPU (NVLink, PCIe) has one of its own. Without such links flows never
// share a port, and only its load is counted.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cost_models/calibration.h"
#include "cost_models/spec/cluster_spec.h"

namespace tessera {

enum class LinkKind { card, uplink, pcie_switch, socket, port };
std::string_view name_of(LinkKind kind);

struct ClusterNetwork {
  std::int64_t gpus_per_node = 1, cards_per_node = 1, nodes_per_leaf = 1, leaves = 1;
  bool uplinks = false;  // oversubscribed
  bool rails = false;
  std::vector<std::int64_t> working;  // cards, by node
  std::vector<double> capacity;       // of the network's links
  double port_rate = 0;               // of a GPU's port
  std::int64_t gpus = 0;
  std::int64_t gpus_per_switch = 0, gpus_per_socket = 0;  // that share such a link; 0: none do

  /// Links from one GPU to another: of the network between nodes, else their ports and what GPUs
  /// share between these.
  std::vector<int> path(int source, int destination) const;
  int port(int rank, bool in) const;
  /// The GPUs whose bytes a link carries, ascending: of a port its own, of a card those that use
  /// it, of an uplink all below its switch, of a PCIe switch or a socket all behind it.
  std::vector<int> ranks_of(int link) const;
  bool is_port(int link) const { return link >= static_cast<int>(capacity.size()); }
  int links() const {
    return static_cast<int>(capacity.size() + 2 * static_cast<std::size_t>(gpus));
  }
  bool shares_within() const { return gpus_per_switch > 0 || gpus_per_socket > 0; }
  /// True of ports and of what GPUs of a node share.
  bool is_within(int link) const;
  /// Of all links that flows cross: ports among them where GPUs of a node share links.
  std::vector<double> flow_capacity() const;
  double rate(int link) const;
  LinkKind kind(int link) const;
  /// "node 3, card 1, out"; "leaf 0, in"; "leaf 0, rail 2, out"; "node 3, switch 1, in"; "node 3,
  /// socket 0, out"; "GPU 5, out".
  std::string name(int link) const;
};

/// Links of the nodes that hold ranks 0 to `gpus` - 1. `lost_card_of`: nodes, once for each card
/// that does not work. Precondition: every node keeps a card.
ClusterNetwork cluster_network(const ClusterSpec& cluster, const Calibration& calibration,
                               std::int64_t gpus, std::span<const std::int64_t> lost_card_of = {});

/// True where GPUs of a node share a card, an uplink that is narrower than their cards, or links on
/// the way to one another.
bool shares_links(const ClusterSpec& cluster, std::span<const std::int64_t> lost_card_of = {});

}  // namespace tessera
