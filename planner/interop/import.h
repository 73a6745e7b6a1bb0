// Another tool's configuration as a plan: a hand-written plan, to be checked and priced like any.
//
// What the file does not determine is taken from the tool's defaults or from ImportOptions, and
// every such assumption is a note. Keys that the tool itself ignores are listed. Pure but for
// reading the models that the file names.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/calibration.h"
#include "planner/interop/config_values.h"
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

/// verl (flattened or Hydra YAML, override lists, .sh files), arguments of Megatron-LM, and of vLLM
/// and SGLang servers. nullopt and all Problems of the file otherwise.
std::optional<Imported> import_config(std::string_view text, const std::string& file,
                                      const ImportOptions& options, Problems& problems);

/// Keys of verl that it does not read, given the others, each with the reason.
std::vector<IgnoredKey> ignored_keys(const ConfigValues& config);

/// Problems for keys that verl's version does not have, with did-you-mean or the new name.
Problems unknown_keys(const ConfigValues& config);

/// Keys of earlier versions of verl under the name that they have now, each with a note; those that
/// are gone are taken out and appended to `gone`.
ConfigValues with_current_names(const ConfigValues& config, std::vector<IgnoredKey>& gone,
                                std::vector<std::string>& notes);

/// The readers of import_config.
std::optional<Imported> import_verl(const ConfigValues& config, const ImportOptions& options,
                                    Problems& problems);
std::optional<Imported> import_megatron(const ConfigValues& config, const ImportOptions& options,
                                        Problems& problems);

std::optional<Imported> import_server(const ConfigValues& config, const ImportOptions& options,
                                      Problems& problems);

/// A model by path, preset or hub name ("Qwen/Qwen2.5-7B-Instruct" is the preset qwen2.5-7b).
std::optional<ModelSource> find_model(const std::string& name, const ConfigValues& config,
                                      const std::string& key, std::vector<std::string>& notes,
                                      Problems& problems);

/// RolePlan::gpu_types of every role, by its ranks.
void state_gpu_types(Plan& plan);

/// Fills memory, reshard and prediction by the cost models. A rollout that a server runs decodes as
/// many sequences at once as there are, as it may, and as its cache holds: what `memory_share` of
/// the GPU leaves beside its weights and workspace. A server that plans nothing else must hold one.
/// Returns what they leave out, and where the plan does not fit, by role and bytes; `fits` tells
/// the latter.
struct Pricing {
  bool fits = true;
  std::vector<std::string> notes;
};
Pricing price(Plan& plan, const Calibration& calibration, double memory_share = 0);

}  // namespace tessera
