// Readers of run.yaml's RL algorithm: what may be said follows from the tables of estimators and
// policy losses. Problems go to the reader; pure otherwise.
#pragma once

#include "cost_models/documents/object_reader.h"
#include "executor/config/run_config.h"

namespace tessera {

struct Plan;

/// `algorithm` of the root. The estimator must suit the plan's dataflow, by default the first one
/// that does.
AlgorithmConfig read_algorithm(ObjectReader& root, const Plan& plan);

/// `policy_loss` of the actor.
void read_policy_loss(ObjectReader& actor, PolicyLossOptions& policy);

}  // namespace tessera
