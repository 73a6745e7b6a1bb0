// What an importer makes of another tool's configuration, and what all importers share on the way.
//
// Plain values; the functions are pure but for reading the models that a file names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "planner/interop/config/config_values.h"
#include "planner/interop/config/import_options.h"
#include "planner/plan/plan.h"

namespace tessera {

struct Imported {
  Plan plan;  // valid; without prediction until priced
  std::vector<std::string> notes;
  std::vector<IgnoredKey> ignored;
  double memory_share = 0;  // of a GPU, that the rollout's server may take; 0 = what is left
};

/// A model by path, preset or hub name ("Qwen/Qwen2.5-7B-Instruct" is the preset qwen2.5-7b).
std::optional<ModelSource> find_model(const std::string& name, const ConfigValues& config,
                                      const std::string& key, std::vector<std::string>& notes,
                                      Problems& problems);

/// RolePlan::gpu_types of every role, by its ranks.
void state_gpu_types(Plan& plan);

}  // namespace tessera
