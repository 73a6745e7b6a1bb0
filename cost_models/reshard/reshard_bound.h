// How fast a reshard can be at best on a cluster: minimum cuts of its graph (Boost.Graph).
//
// The graph: every GPU has a port to its node's fabric (NVLink or PCIe) and one to its network
// card, in and out; cards that several GPUs share are one vertex; a node's cards share an uplink,
// which oversubscription narrows (not where several nodes share a leaf switch: uplinks are left out
// then, and the bound is lower than it could be). Bytes travel directly from a holder to their
// destination, as a ReshardPlan sends them, in any proportion over holders and ports; latency is
// not counted. Three families of cuts: everything that arrives (all destinations, senders
// unlimited), everything that leaves (all senders, destinations unlimited), and each destination
// alone with both ends. Rates are those of the calibration, so that bound and prediction differ by
// what the plan does with them. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cost_models/calibration.h"
#include "cost_models/layout/reshard_demand.h"
#include "cost_models/spec/cluster_spec.h"
#include "cost_models/spec/units.h"

namespace tessera {

/// The narrowest cut: `bytes` have to pass ports that reach `rate` together.
struct ReshardCut {
  Seconds seconds;
  Bytes bytes;
  BytesPerSecond rate;
  std::string where;  // "NVLink4 + NVSwitch into GPU 3 and 7 more"; empty = nothing has to move
};

struct ReshardBound {
  Seconds seconds;               // the largest of these
  ReshardCut arriving, leaving;  // all destinations, all senders
  ReshardCut destination;        // the slowest destination alone
  const ReshardCut& narrowest() const;
};

ReshardBound reshard_bound(std::span<const ReshardDemand> demands, const ClusterSpec& cluster,
                           const Calibration& calibration);

}  // namespace tessera
