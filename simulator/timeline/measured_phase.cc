#include "simulator/timeline/measured_phase.h"

namespace tessera {

std::optional<double> number_of(const StepNumbers& step, const std::string& name) {
  const auto found = step.data.find(name);
  if (found == step.data.end()) return std::nullopt;
  return found->second;
}

std::optional<double> measured_seconds(const StepNumbers& step, Phase phase) {
  const std::optional<double> own = number_of(step, "timing_s/" + std::string(name_of(phase)));
  if (own || phase != Phase::reshard) return own;
  std::optional<double> sum;
  for (const char* part :
       {"timing_s/update_weights", "timing_s/sync_rollout_weights", "timing_s/param_sync",
        "timing_s/switch_to_rollout", "timing_s/switch_to_trainer"}) {
    if (const auto seconds = number_of(step, part)) sum = sum.value_or(0) + *seconds;
  }
  return sum;
}

}  // namespace tessera
