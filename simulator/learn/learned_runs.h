// What measured runs teach about the constants behind their plans, and how far the rest of them is
// predicted better with it.
//
// Every run is priced with its own plan, layouts and measured lengths; the phases are what
// is fitted (learned_constants.h). A part is held out: with several runs each run in turn, learned
// from all others; of one run the second half of its steps, learned from the first. Pure functions;
// seconds.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/fit/learned_constants.h"
#include "simulator/learn/measured_run.h"

namespace tessera {

/// A phase of a run, or its whole step, beside both predictions.
struct FittedPhase {
  std::string what;
  double measured_s = 0, deviation_s = 0;
  double before_s = 0, after_s = 0;  // by the base and by the learned constants
};

struct FittedRun {
  std::string name;
  std::vector<FittedPhase> phases;  // in the order of enum Phase, the step last
  double scatter = 0;               // standard deviation between its steps, relative to their mean
  bool on_processors = false;
  std::size_t warm_up = 0, of_other_plans = 0;  // steps that were left out
  std::int64_t steps = 0;
  LengthSpec planned_lengths, lengths;
  bool lengths_measured = false;
  std::int64_t planned_prompt = 0;  // tokens
  double prompt_mean = 0;           // 0 = not measured
  std::vector<Phase> waits;         // left out (MeasuredRun::waits)
};

/// What was not looked at when the constants were learned.
struct HeldOut {
  std::string run;
  std::vector<FittedPhase> phases;
};

/// The allocator's unusable part of the device, as runs held it.
struct LearnedMemory {
  int runs = 0;  // that said what they allocated and reserved; 0: fragmentation is left
  double before = 0, after = 0, error = 0;
};

struct LearnedRuns {
  LearnedConstants learned;
  LearnedMemory memory;
  std::vector<FittedRun> runs;
  std::vector<HeldOut> held_out;  // empty: one run of one step
};

/// Mean over the held-out parts of |predicted / measured - 1| of their steps.
struct HeldOutError {
  double before = 0, after = 0;
};
HeldOutError held_out_error(const std::vector<HeldOut>& parts);

/// What learned constants are worth, as far as the runs tell.
enum class LessonWorth {
  better,     // what was held out is predicted better with them
  no_better,  // it is not
  nothing,    // none moved
  untold,     // nothing was held out
  noise,      // of a run on processors, whose steps differ by more than a tenth
};
std::string_view name_of(LessonWorth worth);
LessonWorth worth_of(const LearnedRuns& learned);
/// Whether something speaks against using them.
inline bool is_poor(LessonWorth worth) {
  return worth == LessonWorth::noise || worth == LessonWorth::no_better;
}
/// The run that makes it noise; nullptr: none does.
const FittedRun* noisy_run(const LearnedRuns& learned);

/// Why no constants are learned from a run: it was on several GPU types, or not on the devices that
/// its plan is for. nullopt: they are.
std::optional<Problem> unlearnable(const MeasuredRun& run);

/// Precondition: at least one run; all on devices of one kind, which `base` is of. Throws Stopped
/// (cost_models/documents/stopped.h).
LearnedRuns learn_from_runs(const std::vector<MeasuredRun>& runs, const Calibration& base,
                            const LearnOptions& options = {});

}  // namespace tessera
