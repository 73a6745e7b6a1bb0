// The share of a GPU's memory that an inference server gets, as servers take it: vLLM's
// gpu_memory_utilization, SGLang's mem_fraction_static.
//
// A pure function of the plan.
#pragma once

#include "cost_models/spec/workload.h"

namespace tessera {

struct Plan;
struct RolePlan;

/// Weights, cache and workspace of a served role in a phase over the GPU's memory, in hundredths,
/// rounded up, 0.05 to 0.95; `unknown` where the plan does not state them.
double served_memory_share(const Plan& plan, const RolePlan& role, Phase phase, double unknown);

}  // namespace tessera
