// Readers of run.yaml's rewards: rules, programs outside the run, the shaping of long responses.
// Problems go to the reader; pure otherwise.
#pragma once

#include "cost_models/documents/object_reader.h"
#include "executor/config/run_config.h"

namespace tessera {

struct Plan;

/// `reward` of the root: `function` (a rule), `functions` (several, with weights) or verl's
/// `custom_reward_function` (a Python file).
RewardConfig read_reward(ObjectReader& root, const Plan& plan);

}  // namespace tessera
