// What of the bytes that groups of ranks send between nodes passes the uplinks of leaf switches.
//
// All groups of a kind are taken to send at once; the busiest uplink counts. A ring goes from node
// to node in the order of ranks, as many times as a node has members, and so leaves a switch once;
// of what members send to each other one (all-to-all) the pairs under two switches cross. With
// rails each card of a leaf's nodes hangs on a switch of its own. Pure functions of ranks, which
// count from the first GPU of a leaf.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cost_models/spec/cluster_spec.h"

namespace tessera {

/// Parts of what the GPUs under the busiest leaf switch send to other nodes, 0 to 1.
struct LeafShares {
  double ring = 1;   // of rings, and of messages between two ranks
  double pairs = 1;  // of all-to-all
  bool operator==(const LeafShares&) const = default;
};

/// Whether bytes between nodes may pass uplinks, or none: else all of a cluster's do, or none is
/// narrower than what hangs on it.
bool has_leaves(const ClusterSpec& cluster);

/// Groups of equal shape, to which the first `gpus` GPUs of a cluster belong, each to one.
struct GroupSpread {
  std::int64_t gpus = 1;
  double ranks = 1, nodes = 1;  // of a group
  /// Of one coordinate of its ranks: how far apart neighbours are, how many GPUs it goes along, and
  /// members of the group there. It is the slowest one, unless a faster one goes beyond a leaf.
  std::int64_t step = 1, extent = 1;
  double members = 1;
  double one_card = 1;  // part of the pairs of a node's members that share a card
};
/// Precondition: has_leaves(cluster).
LeafShares leaf_shares(const ClusterSpec& cluster, const GroupSpread& groups);
/// Of messages from each stage to the next, `step` GPUs on, in pipelines of `extent` GPUs.
double leaf_share_of_messages(const ClusterSpec& cluster, std::int64_t gpus, std::int64_t step,
                              std::int64_t extent);

/// Counted of listed ranks, group by group.
LeafShares counted_leaf_shares(const ClusterSpec& cluster,
                               std::span<const std::vector<int>> groups);
/// Of messages between ranks, from first to second.
double counted_leaf_share(const ClusterSpec& cluster,
                          std::span<const std::pair<int, int>> messages);

}  // namespace tessera
