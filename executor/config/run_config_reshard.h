// The section `reshard` of run.yaml. Problems go to the reader; pure otherwise.
#pragma once

#include "cost_models/documents/object_reader.h"
#include "executor/config/run_config.h"

namespace tessera {

struct Plan;

/// How this run moves the actor's weights: the plan's way, and the options of the file.
ReshardConfig read_reshard(ObjectReader& root, const Plan& plan);

}  // namespace tessera
