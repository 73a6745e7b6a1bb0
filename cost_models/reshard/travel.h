// How the bytes of a reshard travel, and what that costs in time and memory: by transport, in how
// many buckets. The one computation that pricing, simulation and `tessera reshard` share.
//
// Pure functions of one rank's bytes. A bucket bounds what a rank sends or receives in a round;
// rounds follow one another, each with the latency of its messages, which is why small buckets cost
// time and large ones memory. Sources: executor/transfers (reshard_rounds.h,
// weight_reshard_options.h) for rounds and stages, collective.h for the rates.
#pragma once

#include <optional>

#include "cost_models/calibration.h"
#include "cost_models/collective.h"
#include "cost_models/layout/reshard_transport.h"
#include "cost_models/spec/cluster_spec.h"
#include "cost_models/spec/units.h"

namespace tessera {

struct ReshardTravel {
  /// automatic is priced as copy engines, which a run takes among GPUs of one host.
  ReshardTransport transport = ReshardTransport::automatic;
  Bytes bucket;  // 0 = everything in one round
  bool operator==(const ReshardTravel&) const = default;
};

/// Rounds in which `busiest` bytes pass: a whole number, at least 1.
double rounds_of(Traffic busiest, Bytes bucket);

/// When a destination has its weights: what it `received` must have passed its ports, and what the
/// `busiest` of its senders sends must have left. It exchanges `messages` messages a round. By
/// copy_engine and automatic without buckets this is arrival_seconds (collective.h); send_recv and
/// all_gather go at NCCL's rates, window at those of copy engines with an all-gather's latency, and
/// host passes host memory twice, bucket by bucket, where GPUs have memory of their own.
/// `shared`: how long the bytes over shared links take, where that was simulated; by default every
/// GPU has its share of its node's cards, and sends as much to each other one of its node.
struct SharedSeconds {
  Seconds within, across;  // nodes, between them
};
Seconds travel_seconds(const MovedBytes& received, int messages, const MovedBytes& busiest,
                       const ReshardTravel& travel, const ClusterSpec& cluster,
                       const Calibration& calibration,
                       std::optional<SharedSeconds> shared = std::nullopt);

/// A ring of `group` gathers `whole` bytes in `pieces` all-gathers of equal size.
Seconds gather_seconds(Traffic whole, double pieces, GroupShape group, const ClusterSpec& cluster,
                       const Calibration& calibration);

/// Device memory of a rank beside both layouts' weights, at most: stages of what travels merged by
/// send_recv, all_gather and window (four buckets; 512 MiB where there is no bound). Reads of
/// peers' memory land where they belong.
Bytes travel_stages(const ReshardTravel& travel);

}  // namespace tessera
