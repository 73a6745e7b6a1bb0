// A reshard beside the optimizer's step: what it costs there, beside the step alone, the two in
// series, and what links allow.
//
// The step is AdamW over fp32 states, layer after layer, as the trainer's. Collective; seconds are
// those of the slowest rank.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "executor/bench/reshard_rig.h"

namespace tessera {

struct OverlapBenchOptions {
  DType dtype = DType::bf16;
  ReshardTransport transport = ReshardTransport::copy_engine;
  int repetitions = 10;
  double wire_s = 0;  // the least time of the reshard on the machine's links
};

/// With the weights in memory of their own, as in a run; `nested`: as views of the rollout's, where
/// nothing is copied within a rank. Leaves other values in the rig's memory.
nlohmann::json bench_overlap(const BenchSite& site, const ParameterTable& table, ReshardRig& rig,
                             const OverlapBenchOptions& options);

}  // namespace tessera
