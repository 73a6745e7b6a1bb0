// What a validation says: means, best, worst and majority of n answers to a prompt, by data source.
//
// Values and names are those of verl 0.9.1 (trainer/ppo/metric_utils.process_validation_metrics and
// RayPPOTrainer._val_metrics_update), its 1,000 draws with numpy's generator of seed 42 included.
// Pure functions, any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "executor/rl/rows.h"

namespace tessera {

/// One answer to a prompt of a validation set.
struct ValidationSample {
  std::string data_source, uid;          // answers with equal uid are to one prompt
  std::map<std::string, double> values;  // by variable: "reward", "acc", names of functions
  std::optional<std::string> answer;     // what the majority is counted of; none = not found
};

/// `val-core/SOURCE/VARIABLE/mean@n`, `best@n/mean` and `maj@n/mean` of all n answers, and as
/// `val-aux/...` std@n, worst@n, fewer answers than there are, and variables beside the main one
/// (acc where a source has it, else reward). best, worst and maj are means and deviations over
/// 1,000 draws with replacement, by prompt, then averaged over prompts. Where some answer to a
/// prompt was not found, there is no majority of that prompt.
Metrics validation_metrics(std::span<const ValidationSample> samples);

/// "[Validation] step 20: val-core/openai/gsm8k/reward/mean@1 0.532": the numbers of the main
/// variables.
std::string validation_line(std::int64_t step, const Metrics& metrics);

}  // namespace tessera
