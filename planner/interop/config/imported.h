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
  /// Measured mean of the responses, those that the limit cut among them, in tokens; without it
  /// every response is as long as the longest.
  std::optional<double> response_mean;
  /// Standard deviation over mean of the log-normal that the limit cuts; 0.5 where there is a mean.
  std::optional<double> response_cv;
  std::optional<double> prompt_mean;  // tokens, of micro-batches that count sequences
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

/// Lengths of responses that end at `max` tokens, as the options say: a mean that was measured is
/// that of the log-normal cut at `max`. What is assumed is a note; options that no such lengths
/// have are Problems.
LengthSpec response_lengths(const ImportOptions& options, std::int64_t max,
                            std::vector<std::string>& notes, Problems& problems);

/// Mean prompt in tokens where prompts end at `max`: that of the options, else `max` itself.
double mean_prompt(const ImportOptions& options, std::int64_t max, Problems& problems);

/// A model by path, preset or hub name ("Qwen/Qwen2.5-7B-Instruct" is the preset qwen2.5-7b).
std::optional<ModelSource> find_model(const std::string& name, const ConfigValues& config,
                                      const std::string& key, std::vector<std::string>& notes,
                                      Problems& problems);

/// RolePlan::gpu_types of every role, by its ranks.
void state_gpu_types(Plan& plan);

}  // namespace tessera
