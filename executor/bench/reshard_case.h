// The cases of tessera bench reshard: training and rollout layouts as a command line gives them.
//
// Pure functions; no torch.
#pragma once

#include <span>
#include <string>

#include "cost_models/layout/parameter_table.h"
#include "cost_models/layout/rank_map.h"
#include "cost_models/spec/model_spec.h"

namespace tessera {

/// Degrees in any order, e.g. "tp2pp2", "fsdp4", "tp2fsdp2", "ep4", "tp2ep2"; replicas fill the
/// world. Experts are whole (etp 1) where the text does not say etp.
struct ReshardCase {
  std::string from, to;
};

struct ReshardMaps {
  RankMap training, rollout;
};

/// Throws Error naming every layout of the cases that does not fit.
void check_cases(std::span<const ReshardCase> cases, const ModelSpec& model, int ranks);

/// Training on ranks in order; the rollout's in the order (strided, contiguous or shards fastest)
/// that receives least. Throws Error like check_cases.
ReshardMaps maps_of(const ReshardCase& which, const ModelSpec& model, const ParameterTable& table,
                    int ranks, DType dtype);

}  // namespace tessera
