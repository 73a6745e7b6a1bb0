// Readers of `algorithm.rollout_correction` in run.yaml. Problems go to the reader; pure otherwise.
#pragma once

#include "cost_models/documents/object_reader.h"
#include "executor/config/run_config.h"

namespace tessera {

/// Of the map `algorithm`: what to correct, or the bypass.
void read_rollout_correction(ObjectReader& parent, AlgorithmConfig& algorithm);

}  // namespace tessera
