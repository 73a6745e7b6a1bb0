// Reader of rollout.batch_invariant of run.yaml: what the mode promises is held to the plan, and
// what it cannot keep is refused with the reason. Problems go to the reader; pure otherwise.
#pragma once

#include "cost_models/documents/object_reader.h"
#include "executor/config/run_config.h"

namespace tessera {

/// Precondition: the rest of the configuration has been read.
void check_batch_invariance(ObjectReader& root, const Plan& plan, const RunConfig& config);

}  // namespace tessera
