// The rule by which context parallelism can run a model's attention.
//
// Pure; planner and executor refuse by the same rule.
#pragma once

#include <string>

#include "cost_models/spec/model_spec.h"
#include "cost_models/spec/parallel_layout.h"

namespace tessera {

/// Why attention cannot run with this context parallelism; empty: it can, or there is none. A ring
/// over keys knows no windows and no state of linear attention; Ulysses deals query heads out
/// evenly over tp x cp.
std::string context_refusal(const ModelSpec& model, const ParallelLayout& layout);

}  // namespace tessera
