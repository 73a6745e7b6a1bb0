// A reshard that a plan foresees, as plan.json has it.
//
// Plain values; sizes in bytes.
#pragma once

#include <string>

#include "cost_models/layout/reshard_transport.h"
#include "cost_models/spec/units.h"
#include "cost_models/spec/workload.h"

namespace tessera {

struct Plan;
struct ReshardPlan;

/// One pair of layouts between which weights move in every step.
struct PlannedReshard {
  Role from = Role::actor, to = Role::rollout;
  ReshardMode mode = ReshardMode::minimal;
  ReshardTransport transport = ReshardTransport::automatic;
  Bytes bucket_bytes;
  bool keep = true;    // the rollout shard stays mapped in every phase; false = unmap
  std::string digest;  // xxh3 of the ReshardPlan, 16 hex digits
  Bytes bytes_received, lower_bound_bytes, total_received_bytes, peak_bytes;
  bool operator==(const PlannedReshard&) const = default;
};

/// True where what moves in a step are the adapters of the destination alone: the weights that they
/// stand beside have gone once, and stay.
bool moves_adapters_alone(const Plan& plan, const PlannedReshard& pair);

/// The bytes that one rank receives of these weights before the first generation; 0 where every
/// step moves all.
Bytes first_bytes(const Plan& plan, const PlannedReshard& pair);

/// Writes digest, bytes and lower bound of an exact reshard into the pair.
void set_exact(PlannedReshard& pair, const ReshardPlan& exact);
/// Those of the plan's own reshard in a step, with the adapters' bytes where they come beside all.
void set_exact(const Plan& plan, PlannedReshard& pair);

/// False where a plan was too large for exact ranges: its bytes are an estimate, without a digest.
inline bool has_exact_reshard(const PlannedReshard& pair) { return !pair.digest.empty(); }

}  // namespace tessera
