#include "simulator/timeline/measured_phase.h"

#include <algorithm>
#include <array>

namespace tessera {
namespace {

bool saved(const StepNumbers& step) { return step.data.contains("timing_s/save_checkpoint"); }

}  // namespace

bool saves_apart(std::span<const StepNumbers> steps) {
  const auto saving = std::ranges::count_if(steps, saved);
  return saving > 0 && saving < std::ssize(steps);
}

std::vector<double> step_seconds(std::span<const StepNumbers> steps) {
  const bool apart = saves_apart(steps);
  std::vector<double> all;
  for (const StepNumbers& step : steps) {
    if (apart && saved(step)) continue;
    if (const auto seconds = number_of(step, "timing_s/step")) all.push_back(*seconds);
  }
  return all;
}

std::optional<double> number_of(const StepNumbers& step, const std::string& name) {
  const auto found = step.data.find(name);
  if (found == step.data.end()) return std::nullopt;
  return found->second;
}

std::span<const std::string_view> parts_of(Phase phase) {
  static constexpr std::array<std::string_view, 5> kReshard{
      "timing_s/update_weights", "timing_s/sync_rollout_weights", "timing_s/param_sync",
      "timing_s/switch_to_rollout", "timing_s/switch_to_trainer"};
  if (phase == Phase::reshard) return kReshard;
  return {};
}

std::optional<double> measured_seconds(const StepNumbers& step, Phase phase) {
  const std::optional<double> own = number_of(step, "timing_s/" + std::string(name_of(phase)));
  if (own) return own;
  std::optional<double> sum;
  for (const std::string_view part : parts_of(phase)) {
    const auto seconds = number_of(step, std::string(part));
    if (seconds) sum = sum.value_or(0) + *seconds;
  }
  return sum;
}

std::string PhaseTime::in_some() const { return in_some_steps(timed, steps); }

std::optional<PhaseTime> phase_time(std::span<const StepNumbers> steps, Phase phase) {
  std::vector<double> values;
  for (const StepNumbers& step : steps) {
    if (const auto seconds = measured_seconds(step, phase)) values.push_back(*seconds);
  }
  if (values.empty()) return std::nullopt;
  return PhaseTime{mean_of(values), std::ssize(values), std::ssize(steps)};
}

}  // namespace tessera
