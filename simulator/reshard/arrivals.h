// When each rank of a reshard has its weights: from the exact transfers to bytes within nodes and
// between them, and from these to seconds.
//
// Pure functions. The simulator's reshard and `tessera reshard` both end here. Where the cards of a
// node serve several GPUs or a node's uplink is oversubscribed, the bytes between nodes share those
// links as flows (simulator/network), and those within a node likewise where GPUs share links
// there; elsewhere every GPU has links of its own and the closed form (travel_seconds) is exact.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cost_models/calibration.h"
#include "cost_models/layout/reshard_plan.h"
#include "cost_models/reshard/travel.h"
#include "cost_models/spec/cluster_spec.h"

namespace tessera {

/// A cluster as one pool sees it, with its constants. Does not own the constants.
struct Machines {
  ClusterSpec cluster;
  const Calibration& calibration;
};

/// Bytes that one destination rank receives, and when it has them all.
struct Arrival {
  int rank = 0;
  std::int64_t bytes = 0;
  Seconds seconds;
  std::vector<std::pair<int, std::int64_t>> from = {};  // ranks and their bytes, ascending
  bool operator==(const Arrival&) const = default;
};

/// The transfers of a reshard in which `ranks` ranks take part. `elements`: bytes of an element of
/// each tensor, or of all where it has one entry. Each of `ends` (the pools of a reshard between
/// GPU types, else one) is asked, and the slower counts. Each destination takes as long as its
/// ports need, or those of the busiest of its senders. Ascending ranks; those that receive nothing
/// are left out.
std::vector<Arrival> arrivals_of(std::span<const Transfer> transfers,
                                 std::span<const Bytes> elements, int ranks,
                                 const ReshardTravel& travel, std::span<const Machines> ends);

}  // namespace tessera
