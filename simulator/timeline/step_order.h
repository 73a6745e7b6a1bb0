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

/// Ascending by their numbers. A line whose number is not above that of the line before it is the
/// first behind a restart, unless it repeats that line.
std::vector<LoggedStep> in_order(const std::vector<StepNumbers>& lines);

}  // namespace tessera
