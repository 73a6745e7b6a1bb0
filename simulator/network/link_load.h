// What crosses a link of the cluster over a run: the data of a view of link load.
//
// `simulate` fills one LinkLoad for each link that something crosses (Simulation::links): network
// cards and leaf uplinks of the network, and every GPU's port to its node's fabric, ways apart, in
// the order of link numbers (network/cluster_network.h). Not counted is what has no task of its
// own: the collectives of tensor, context and expert parallel groups within a pass, and a reshard
// whose exact transfers a plan does not have. Nanoseconds from the start of the timeline, bytes,
// bytes per second; plain values that their owner may copy and share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/network/cluster_network.h"

namespace tessera {

struct LinkLoad {
  int link = 0;  // number in the ClusterNetwork
  LinkKind kind = LinkKind::card;
  std::string name;        // "node 3, card 1, out"; "leaf 0, in"; "GPU 5, out"
  double bytes_per_s = 0;  // what it carries at most, one way
  std::int64_t bytes = 0;  // that crossed it in the run
  double busy_share = 0;   // of the run: time in which anything crosses it
  /// Share of `bytes_per_s` in each of equal windows of the run, of Simulation::load_window_ns
  /// each.
  std::vector<float> load;
  bool operator==(const LinkLoad&) const = default;
};

}  // namespace tessera
