// A model's architecture as Megatron-LM's arguments, written and read.
//
// Free functions; any thread. Names and meanings: NVIDIA/Megatron-LM d98e8a64
// megatron/training/arguments.py, argument_utils.py (core_transformer_config_from_args),
// megatron/core/transformer/transformer_config.py, models/gpt/gpt_model.py.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "cost_models/spec/model_spec.h"
#include "planner/interop/config/config_values.h"
#include "planner/plan/model_source.h"

namespace tessera {

/// The arguments that make Megatron-LM's GPT model this one. What they cannot say is a Problem at
/// `place`; what they leave to the caller a note. Of the folder that the plan names, config.json is
/// read for yarn's mscale, which a ModelSpec holds resolved.
std::vector<std::string> megatron_model_arguments(const ModelSource& model,
                                                  const std::string& place,
                                                  std::vector<std::string>& notes,
                                                  Problems& problems);

/// The model that arguments describe, with Megatron-LM's defaults where they are silent; the family
/// is one whose checkpoints have these parts. nullopt and Problems for what no family has.
std::optional<ModelSpec> megatron_model(const ConfigValues& config, Problems& problems);

/// Names of what two models have unlike each other ("normalization", "sliding window"), of what
/// arguments can say.
std::vector<std::string> unlike(const ModelSpec& one, const ModelSpec& other);

}  // namespace tessera
