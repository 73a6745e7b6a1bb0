// One run as learning and comparing see it: its plan with the lengths that it measured, and its
// steps without those of the warm-up.
//
// Plain values and pure functions. Seconds; deviations one standard deviation; GiB of one rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "cost_models/fit/length_fit.h"
#include "planner/plan/plan.h"
#include "simulator/timeline/comparison.h"

namespace tessera {

/// Mean over steps.
struct MeasuredMean {
  double mean = 0;
  double spread = 0;     // standard deviation between steps
  double deviation = 0;  // of the mean; of a single step a twentieth of it
};

struct MeasuredPhase {
  Phase phase = Phase::gen;
  MeasuredMean seconds;
};

/// Means over some of a run's steps.
struct RunMeans {
  std::vector<MeasuredPhase> phases;  // of the plan's schedule, those that the run timed
  MeasuredMean step;
  std::int64_t steps = 0;
};

/// What torch's allocator and the device held at most, where the run says so; 0 = it does not.
struct RunMemory {
  double allocated_gib = 0, reserved_gib = 0;
  double device_gib = 0;  // of the whole device, by Tessera's own runs
};

struct MeasuredRun {
  std::string name;
  Plan plan;                   // as it ran; its response lengths are the measured ones
  LengthSpec planned_lengths;  // what the plan was made for
  bool lengths_measured = false;
  double prompt_mean = 0;          // tokens; 0 = not measured
  std::vector<StepNumbers> steps;  // without the warm-up
  std::size_t warm_up = 0;         // steps that were left out
  RunMemory memory;
};

/// Steps at the start that are no measure of those to come: the first one (compilers, caches and
/// communicators start in it), and those right behind it that took more than 1.25 times the median
/// of all later ones, at most half of the steps together. A run of one step has none left out.
std::size_t warm_up_steps(std::span<const StepNumbers> steps);

/// `steps`: lines of metrics; those without timing_s/step (validation) are passed over. `warm_up`:
/// instead of the rule. nullopt and a Problem where no step is left.
std::optional<MeasuredRun> measured_run(const std::string& name, Plan plan,
                                        std::vector<StepNumbers> steps,
                                        std::optional<std::size_t> warm_up, Problems& problems);

/// Of the run's steps from `first` to before `last`. Precondition: first < last <= steps.
RunMeans means_of(const MeasuredRun& run, std::size_t first, std::size_t last);
RunMeans means_of(const MeasuredRun& run);

}  // namespace tessera
