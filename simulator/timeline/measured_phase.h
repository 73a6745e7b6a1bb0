// The seconds of a phase in one line of metrics, whoever wrote it, and over many steps.
//
// Pure. Tessera's names are verl's ("timing_s/gen", "timing_s/update_actor", ...) but for the way
// of the weights to the rollout, which verl times in parts under names of its own: update_weights
// (trainer/ppo/ray_trainer.py, trainer/ppo/v1), sync_rollout_weights
// (experimental/one_step_off_policy), param_sync (experimental/fully_async_policy), and of a pool
// that changes sides switch_to_rollout and switch_to_trainer (v1/trainer_separate_async.py).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/spec/workload.h"
#include "simulator/timeline/comparison.h"
#include "simulator/timeline/measured_mean.h"

namespace tessera {

/// The names of the parts that verl times where it has no timing_s/PHASE; empty of most phases.
std::span<const std::string_view> parts_of(Phase phase);

/// nullopt where the line has no such time.
std::optional<double> measured_seconds(const StepNumbers& step, Phase phase);

/// What a phase took over steps of which not all may have had it: a checkpoint is saved in a few.
struct PhaseTime {
  MeasuredMean seconds;               // of the steps that timed it
  std::int64_t timed = 0, steps = 0;  // of how many
  /// Seconds that a step had of it, over all steps.
  double per_step() const {
    return steps > 0 ? seconds.mean * static_cast<double>(timed) / static_cast<double>(steps) : 0;
  }
  /// "in 1 of 200 steps"; empty where all had it.
  std::string in_some() const;
};
/// nullopt where no step timed it.
std::optional<PhaseTime> phase_time(std::span<const StepNumbers> steps, Phase phase);

/// Whether some of the steps saved a checkpoint, which the times of their steps contain, and others
/// did not.
bool saves_apart(std::span<const StepNumbers> steps);

/// timing_s/step of the steps that have it: a step as plans mean it. Those that saved a checkpoint
/// are left out where others did not.
std::vector<double> step_seconds(std::span<const StepNumbers> steps);

/// A number of the line by its name, or nullopt.
std::optional<double> number_of(const StepNumbers& step, const std::string& name);

}  // namespace tessera
