// A run beside its prediction, with error bars on both sides: phases, bytes, memory, lengths; where
// they differ most, and why that is likely.
//
// Pure functions. Seconds, GiB of one rank, tokens; deviations one standard deviation. A cause is
// the first row of a table of rules that holds (gap_causes.cc): it is likely, not proven.
#pragma once

#include <string>
#include <vector>

#include "cost_models/calibration.h"
#include "simulator/timeline/comparison.h"
#include "simulator/timeline/wire_options.h"

namespace tessera {

struct MeasuredRun;

struct MemoryComparison {
  std::string what;  // "device", "allocated by the actor"
  double predicted_gib = 0, deviation_gib = 0;
  double measured_gib = 0;
};

struct LengthComparison {
  std::string what;  // "response", "prompt": mean tokens
  double planned = 0, measured = 0;
};

/// Seconds that a phase took longer than predicted (below 0: shorter).
struct Gap {
  std::string what;  // the phase, or "outside": of the step, in none of its phases
  double seconds = 0;
  std::string cause;
};

struct RunComparison {
  Comparison times;
  std::vector<MemoryComparison> memory;
  std::vector<LengthComparison> lengths;
  std::vector<Gap> gaps;                        // the three largest, by size
  std::size_t warm_up = 0, of_other_plans = 0;  // steps that were left out
};

/// The run's plan with the prediction that it was made with; `calibration`: what error bars are of.
RunComparison compare_run(const MeasuredRun& run, const Calibration& calibration,
                          const WireOptions& options = {});

/// How many steps of other plans were left out, as a line; empty where there are none.
std::string other_plans_line(std::size_t steps);

std::string to_text(const RunComparison& comparison);
/// docs/schemas/comparison.schema.json.
std::string to_json(const RunComparison& comparison);

}  // namespace tessera
