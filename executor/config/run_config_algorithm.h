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

/// `policy_loss` of the actor, and what else of the actor only some policy losses read.
void read_policy_loss(ObjectReader& actor, PolicyLossOptions& policy);

/// Makes bypass_mode of `algorithm` the actor's loss; refuses the loss without the mode.
void apply_bypass_mode(ObjectReader& root, const AlgorithmConfig& algorithm,
                       PolicyLossOptions& policy);

/// `distillation` of the root: the loss and the folder of the teacher, which the plan's reference
/// holds.
void read_distillation(ObjectReader& root, const Plan& plan, ActorConfig& actor);

}  // namespace tessera
