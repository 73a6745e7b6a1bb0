// Selective recomputation of a Megatron-Core configuration as a plan knows it.
//
// Pure functions.
#pragma once

#include <string>
#include <vector>

#include "cost_models/memory.h"
#include "cost_models/spec/model_spec.h"
#include "planner/interop/config/config_values.h"

namespace tessera {

/// The words of a list; one word stands for a list of one, and of none where the key is not there.
std::vector<std::string> words_of(const Node* node);

/// What recompute_granularity = selective with these modules (empty: Megatron-Core's default, the
/// core of attention) is in a plan of the model: selective where any of what plans count is in the
/// list (recompute_modules), else none. Notes say what the prices leave out.
Recompute selective_of(const std::vector<std::string>& modules, const ModelSpec& model,
                       std::vector<std::string>& notes);

}  // namespace tessera
