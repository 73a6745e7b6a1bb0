// Keys of run.yaml's section `trainer` about checkpoints. Problems go to the reader; pure
// otherwise.
#pragma once

#include "cost_models/documents/object_reader.h"
#include "executor/config/run_config.h"

namespace tessera {

CheckpointConfig read_checkpoint(ObjectReader& trainer);

}  // namespace tessera
