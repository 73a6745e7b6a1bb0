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
#include <string_view>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "cost_models/fit/length_fit.h"
#include "planner/plan/plan.h"
#include "simulator/timeline/comparison.h"
#include "simulator/timeline/measured_mean.h"

namespace tessera {

struct MeasuredPhase {
  Phase phase = Phase::gen;
  MeasuredMean seconds;
};

/// Means over some of a run's steps.
struct RunMeans {
  std::vector<MeasuredPhase> phases;  // of the plan's schedule, those that the run timed; no waits
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
  Plan plan;                       // as it ran; its lengths are the measured ones
  Workload planned;                // what the plan was made for
  bool lengths_measured = false;   // of responses
  double prompt_mean = 0;          // tokens; 0 = not measured
  std::vector<StepNumbers> steps;  // without the warm-up
  std::size_t warm_up = 0;         // steps that were left out, those behind restarts among them
  std::size_t of_other_plans = 0;  // left out, too: the folder's run had another plan before
  RunMemory memory;
  /// Phases that run beside the trainer, whose time in the log is the trainer's wait for them.
  std::vector<Phase> waits;
  bool has_reward_programs = false;  // Python files, programs or a service scored the responses
  bool on_other_devices = false;     // its ranks ran on processors, and the plan is for GPUs
};

/// Whether measured_run(), means_of() or compare_run() reads the number of that name: who follows a
/// long run need not keep the others for them.
bool is_compared(std::string_view name);

/// Steps at the start that are no measure of those to come: the first one (compilers, caches and
/// communicators start in it), and those right behind it that took more than 1.25 times the median
/// of all later ones, at most half of the steps together. A run of one step has none left out.
std::size_t warm_up_steps(std::span<const StepNumbers> steps);
/// `seconds`: of each step.
std::size_t warm_up_steps(std::span<const double> seconds);

/// `steps`: lines of metrics; those without timing_s/step (validation) are passed over, and of
/// lines with one number the last counts. Steps that another plan ran, by their kPlanNumber, are
/// left out. Beside warm_up_steps() the first step behind each restart is left out while another is
/// left. `warm_up`: steps at the start instead of both rules. nullopt and a Problem where no step
/// is left, or where prompts or responses are longer than the plan allows.
std::optional<MeasuredRun> measured_run(const std::string& name, Plan plan,
                                        std::vector<StepNumbers> steps,
                                        std::optional<std::size_t> warm_up, Problems& problems);

/// Of the run's steps from `first` to before `last`. Precondition: first < last <= steps.
RunMeans means_of(const MeasuredRun& run, std::size_t first, std::size_t last);
RunMeans means_of(const MeasuredRun& run);

}  // namespace tessera
