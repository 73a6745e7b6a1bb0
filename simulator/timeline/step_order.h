// The steps of a log in their order, each once.
//
// Pure. A run that is resumed writes the steps behind its checkpoint again.
#pragma once

#include <vector>

#include "simulator/timeline/comparison.h"

namespace tessera {

/// One step of a log, by its last line.
struct LoggedStep {
  StepNumbers numbers;
  bool restarted = false;  // the first that a resumed run wrote, behind its start
};

/// In metrics.jsonl of Tessera's own runs: how many steps the processes that made this one have
/// made by then, 1 = it is their first; and run_number() of the plan that they ran.
inline constexpr const char* kStepsSinceStart = "training/steps_since_start";
inline constexpr const char* kPlanNumber = "plan/number";

/// Ascending by their numbers. The first step behind a restart is one that says so itself, and one
/// whose number is not above that of the line before it, unless it repeats that line.
std::vector<LoggedStep> in_order(const std::vector<StepNumbers>& lines);

}  // namespace tessera
