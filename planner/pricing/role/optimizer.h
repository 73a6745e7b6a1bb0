// An optimizer step of one stage.
//
// Pure.
#pragma once

#include "cost_models/compute.h"
#include "cost_models/spec/units.h"
#include "planner/pricing/role/shards.h"

namespace tessera {

/// One optimizer step of one stage.
struct OptimizerCost {
  MovedShards reduce, gather;  // gradients over the replicas; parameters back
  Work update;
};

/// What of its communication no backward pass hides.
struct StepExposed {
  Seconds reduce, gather;
};

/// Gradients over the replicas, the update of this rank's part, parameters back under ZeRO-1 and
/// -2: 2 (d - 1) / d of their bytes (Rajbhandari et al. 2020). FSDP reduced its gradients within
/// the shard group already; replicas of it are still to be added.
OptimizerCost optimizer_cost(const RoleLayout& layout, const Candidate& candidate,
                             const Elements& elements);

/// Beside a last backward pass that takes so long.
StepExposed exposed_of(const Assumptions& assumed, const OptimizerCost& cost,
                       const Candidate& candidate, Seconds last_backward);

}  // namespace tessera
