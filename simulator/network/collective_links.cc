#include "simulator/network/collective_links.h"

#include <algorithm>
#include <cstddef>

namespace tessera {
namespace {

void add_path(const ClusterNetwork& network, int source, int destination, double weight,
              LinkWeights& weights) {
  for (const int link : network.path(source, destination)) weights[link] += weight;
}

bool on_one_node(const ClusterNetwork& network, std::span<const int> members) {
  return std::all_of(members.begin(), members.end(), [&](int rank) {
    return rank / network.gpus_per_node == members.front() / network.gpus_per_node;
  });
}

void add_path_within(const ClusterNetwork& network, int source, int destination, double weight,
                     LinkWeights& weights) {
  for (const int link : network.path(source, destination)) {
    if (!network.is_port(link)) weights[link] += weight;
  }
}

/// Members by node, in the order of nodes.
std::vector<std::vector<int>> by_node(const ClusterNetwork& network, std::span<const int> members) {
  std::map<std::int64_t, std::vector<int>> nodes;
  for (const int rank : members) nodes[rank / network.gpus_per_node].push_back(rank);
  std::vector<std::vector<int>> result;
  for (auto& [node, ranks] : nodes) result.push_back(std::move(ranks));
  return result;
}

}  // namespace

// As much to each member of another node.
void add_sends(const ClusterNetwork& network, int source, std::span<const int> members,
               LinkWeights& weights) {
  std::vector<int> others;
  for (const int rank : members) {
    if (rank / network.gpus_per_node != source / network.gpus_per_node) others.push_back(rank);
  }
  for (const int rank : others) {
    add_path(network, source, rank, 1 / static_cast<double>(others.size()), weights);
  }
}

void add_collective(const ClusterNetwork& network, Collective collective,
                    std::span<const int> members, LinkWeights& weights) {
  const std::vector<std::vector<int>> nodes = by_node(network, members);
  if (nodes.size() < 2) return;
  if (collective == Collective::all_to_all) {
    for (const int source : members) add_sends(network, source, members, weights);
    return;
  }
  std::size_t channels = members.size();
  for (const auto& ranks : nodes) channels = std::min(channels, ranks.size());
  const double part = static_cast<double>(members.size()) /
                      static_cast<double>(nodes.size() * channels);  // 1 where nodes are alike
  const bool chain = collective == Collective::broadcast;            // ends at its last node
  for (std::size_t node = 0; node + (chain ? 1 : 0) < nodes.size(); ++node) {
    const auto& next = nodes[(node + 1) % nodes.size()];
    for (std::size_t channel = 0; channel < channels; ++channel) {
      add_path(network, nodes[node][channel], next[channel], part, weights);
    }
  }
}

void add_message(const ClusterNetwork& network, int source, int destination, LinkWeights& weights) {
  if (source / network.gpus_per_node == destination / network.gpus_per_node) return;
  add_path(network, source, destination, 1, weights);
}

void add_within(const ClusterNetwork& network, Collective collective, std::span<const int> members,
                LinkWeights& weights) {
  if (!network.shares_within() || members.size() < 2 || !on_one_node(network, members)) return;
  if (collective == Collective::all_to_all) {
    for (const int source : members) add_sends_within(network, source, members, weights);
    return;
  }
  const bool chain = collective == Collective::broadcast;
  for (std::size_t i = 0; i + (chain ? 1 : 0) < members.size(); ++i) {
    add_path_within(network, members[i], members[(i + 1) % members.size()], 1, weights);
  }
}

void add_sends_within(const ClusterNetwork& network, int source, std::span<const int> members,
                      LinkWeights& weights) {
  if (!network.shares_within() || !on_one_node(network, members)) return;
  for (const int rank : members) {
    if (rank == source) continue;
    add_path_within(network, source, rank, 1 / static_cast<double>(members.size() - 1), weights);
  }
}

void add_message_within(const ClusterNetwork& network, int source, int destination,
                        LinkWeights& weights) {
  if (!network.shares_within() ||
      source / network.gpus_per_node != destination / network.gpus_per_node) {
    return;
  }
  add_path_within(network, source, destination, 1, weights);
}

GroupShape shape_of(const ClusterSpec& cluster, std::span<const int> members) {
  std::map<std::int64_t, std::vector<int>> nodes;  // places in each
  for (const int rank : members) {
    nodes[rank / cluster.gpus_per_node].push_back(static_cast<int>(rank % cluster.gpus_per_node));
  }
  GroupShape shape{static_cast<int>(members.size()), static_cast<int>(nodes.size())};
  for (const auto& [node, places] : nodes) shape = with_crossings(shape, cluster, places);
  return shape;
}

GroupShape widest(const GroupShape& one, const GroupShape& other) {
  return {std::max(one.ranks, other.ranks), std::max(one.nodes, other.nodes),
          std::max(one.over_switch, other.over_switch),
          std::max(one.over_socket, other.over_socket)};
}

MemberBytes member_bytes(Collective collective, Traffic bytes, GroupShape group) {
  if (group.ranks <= 1 || bytes <= 0) return {};
  if (group.nodes <= 1) return {{}, wire_bytes(collective, bytes, group.ranks)};
  const double nodes = group.nodes, per_node = group.ranks / nodes;
  MemberBytes moved;
  switch (collective) {
    case Collective::all_reduce:
    case Collective::all_gather:
    case Collective::reduce_scatter:
      // Of one ring over the nodes, which carries a member's part of the buffer.
      moved.card = wire_bytes(collective, bytes / per_node, group.nodes);
      break;
    case Collective::all_to_all:
      moved.card = wire_bytes(collective, bytes, group.nodes);
      break;
    case Collective::broadcast:
      moved.card = bytes / per_node;
      break;
    default:
      moved.card = bytes;
      return moved;
  }
  const int inside = (group.ranks + group.nodes - 1) / group.nodes;
  if (inside > 1) moved.port = wire_bytes(collective, bytes, inside);
  return moved;
}

}  // namespace tessera
