// The links between the nodes of a cluster, as flows share them: network cards and uplinks.
//
// A plain value made of a ClusterSpec and the calibration's efficiency; rates in bytes per second,
// one way. The graph is that of ReshardBound (cost_models/reshard/reshard_bound.h): GPU g of a node
// uses card g * cards / GPUs, in and out apart, and every card that is its own where there are more
// cards than GPUs; the cards of a node share an uplink to the spine of cards x rate /
// oversubscription each way. The fabric within a node is no part of it: every GPU has its own port
// there.
#pragma once

#include <cstdint>
#include <vector>

#include "cost_models/calibration.h"
#include "cost_models/spec/cluster_spec.h"

namespace tessera {

struct ClusterNetwork {
  std::int64_t gpus_per_node = 1, cards_per_node = 1;
  bool uplinks = false;  // oversubscribed
  std::vector<double> capacity;

  /// Links from one GPU to another on another node.
  std::vector<int> path(int source, int destination) const;
};

/// Links of the nodes that hold ranks 0 to `gpus` - 1.
ClusterNetwork cluster_network(const ClusterSpec& cluster, const Calibration& calibration,
                               std::int64_t gpus);

/// True where GPUs of a node share a card or an uplink that is narrower than their cards.
bool shares_links(const ClusterSpec& cluster);

}  // namespace tessera
