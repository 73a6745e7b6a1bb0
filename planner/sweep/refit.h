// The work that published RL trainers (NeMo RL, verl) do between an update and the next generation
// beside the bytes that a minimal switch would move.
//
// Pure function; seconds. Tessera's own switch has none of it.
#pragma once

#include "cost_models/calibration.h"
#include "cost_models/spec/cluster_spec.h"
#include "cost_models/spec/model_spec.h"
#include "cost_models/spec/units.h"
#include "planner/pricing/evaluate.h"
#include "planner/request/candidate.h"

namespace tessera {

/// Tensor by tensor every rank gathers the whole model, names it as the checkpoint does and hands
/// it to the rollout engine, which loads it; where both share GPUs (`together`) optimizer states
/// first leave for memory that the host must allocate. The wire of a rollout on GPUs of its own is
/// CostEvaluator::reshard_seconds.
Seconds refit_seconds(const ModelSpec& model, const Candidate& actor, bool together,
                      const ClusterSpec& cluster, const Calibration& calibration);

}  // namespace tessera
