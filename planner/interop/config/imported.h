// What an importer makes of another tool's configuration, and what all importers share on the way.
//
// Plain values; the functions are pure but for reading the models that a file names.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "planner/interop/config/config_values.h"
#include "planner/plan/plan.h"

namespace tessera {

struct ImportOptions {
  ClusterSpec cluster;                // GPUs and links; nodes and GPUs per node are the file's
  std::string model, critic, reward;  // instead of the file's
  std::vector<std::string> settings;  // "trainer.nnodes=4": instead of the file's, or added
  double response_mean = 0;           // tokens; 0 = as long as the longest
  double prompt_mean = 0;             // of micro-batches that count sequences; 0 likewise
  bool allow_unknown = false;         // unknown keys are notes
  /// Of clusters with several GPU types, by pool ("trainer", "rollout", "reward"): the type on
  /// which it lies. Pools without one follow each other from the first rank on.
  std::map<std::string, std::string> gpu_types;
};

struct IgnoredKey {
  std::string key, place, why;
};

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
