// Keys of run.yaml's section `trainer` about checkpoints, and what rules may do with them.
//
// Problems go to the reader; pure otherwise.
#pragma once

#include "cost_models/documents/object_reader.h"
#include "executor/config/run_config.h"

namespace tessera {

CheckpointConfig read_checkpoint(ObjectReader& trainer);
/// trainer.rule_actions.
RuleActionsConfig read_rule_actions(ObjectReader& trainer);

}  // namespace tessera
