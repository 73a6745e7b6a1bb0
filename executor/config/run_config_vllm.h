// The engine of the rollout in run.yaml: `actor_rollout_ref.rollout.engine` and `.vllm`. Problems
// go to the reader; pure otherwise.
#pragma once

#include <string>

#include "cost_models/documents/object_reader.h"
#include "executor/config/run_config.h"

namespace tessera {

struct Plan;

/// What the plan says of both: who generates, in which order it adds up, and its servers' memory
/// and sleep where it is for some. What a file leaves out.
void set_planned_generation(const Plan& plan, RolloutConfig& config);

/// For people, where another engine generates than the plan is for, or in another order
/// (batch_invariant); else empty.
std::string generation_note(const Plan& plan, const RolloutConfig& config);

/// Reads both keys. With vLLM it refuses what its servers cannot do for this plan: models and
/// layouts that they cannot hold, hosts, sampling whose log-probs they do not have.
void read_generation_engine(ObjectReader& rollout, const Plan& plan, RolloutConfig& config);

/// Options of the section `reshard` that say nothing where vLLM's workers read the weights.
void refuse_reshard_options_of_vllm(ObjectReader& root);

}  // namespace tessera
