// What the user says beside another tool's configuration, and what follows from that alone.
//
// Plain values; the functions are pure. Lengths in tokens.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "cost_models/spec/cluster_spec.h"
#include "cost_models/spec/workload.h"

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
  std::optional<double> prompt_mean;  // tokens; without it every prompt is as long as the longest
  /// Of the image that every prompt has, as the language model sees it; without it none is counted.
  std::optional<std::int64_t> image_tokens;
  bool allow_unknown = false;  // unknown keys are notes
  /// Of clusters with several GPU types, by pool ("trainer", "rollout", "reward"): the type on
  /// which it lies. Pools without one follow each other from the first rank on.
  std::map<std::string, std::string> gpu_types;
};

struct IgnoredKey {
  std::string key, place, why;
};

/// Lengths of responses that end at `max` tokens, as the options say: a mean that was measured is
/// that of the log-normal cut at `max`. What is assumed is a note; options that no such lengths
/// have are Problems.
LengthSpec response_lengths(const ImportOptions& options, std::int64_t max,
                            std::vector<std::string>& notes, Problems& problems);

/// Mean prompt in whole tokens where prompts end at `max`: that of the options, else `max` itself.
std::int64_t mean_prompt(const ImportOptions& options, std::int64_t max, Problems& problems);

}  // namespace tessera
