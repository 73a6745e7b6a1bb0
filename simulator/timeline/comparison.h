// Prediction against measurement, phase by phase.
//
// Times are seconds, measured as the mean over the steps after the warm-up ones that had the phase;
// a step that stands twice counts once, by its last line. Bytes are those that the run counted as
// they moved; every such step must agree exactly with what plan and run.yaml foresee for it (an
// incremental reshard: move no more). Pure functions of plain values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "simulator/timeline/wire_options.h"

namespace tessera {

struct Plan;

/// The numbers of one step by name, as a line of metrics.jsonl holds them.
struct StepNumbers {
  std::int64_t step = 0;
  std::map<std::string, double> data;
};

struct PhaseComparison {
  std::string phase;       // a phase's name, or "step"
  double predicted_s = 0;  // 0: nothing is predicted for it, and there is no error
  double measured_s = 0;
  double measured_deviation_s = 0;  // of the mean (measured_mean.h)
  double share = 0;                 // of all measured steps
  bool timed = true;                // false: no step says its time, and there is no error
  std::int64_t timed_steps = 0;     // that say it: the time is the mean of these
  /// One standard deviation by the constants behind the prediction, and the part of it that is
  /// communication; 0 where nobody has worked them out (simulator/learn/run_comparison.h).
  double predicted_deviation_s = 0, predicted_communication_s = 0;
  bool is_predicted() const { return predicted_s > 0; }
  /// Whether there is a prediction, and a time to hold it against.
  bool has_error() const { return is_predicted() && timed && measured_s > 0; }
  /// (predicted - measured) / measured; 0 where there is none.
  double relative_error() const {
    return has_error() ? (predicted_s - measured_s) / measured_s : 0;
  }
};

struct BytesComparison {
  std::string what;                          // "reshard actor -> rollout"
  std::int64_t predicted = 0, measured = 0;  // means over the steps
  bool at_most = false;                      // an incremental reshard may move less
  std::int64_t steps_apart = 0;  // that moved other bytes than foreseen, or did not count them
  bool agrees() const { return steps_apart == 0; }
};

/// "equal", "within", or "NOT EQUAL in 3 steps".
std::string verdict(const BytesComparison& bytes);

struct Comparison {
  std::vector<PhaseComparison> phases;  // in the order of enum Phase, the step last
  std::vector<BytesComparison> bytes;
  std::int64_t steps = 0;  // that entered the means
};

/// The first `warm_up` steps are left out of the means (while at least one step remains). Phases
/// that neither side has are left out; a phase of one side only shows 0 on the other.
Comparison compare(const Plan& plan, const std::vector<StepNumbers>& numbers, int warm_up = 2,
                   const WireOptions& options = {});

/// "in 1 of 200 steps"; empty where it is all of them, or none.
std::string in_some_steps(std::int64_t timed, std::int64_t steps);

std::string to_text(const Comparison& comparison);
std::string to_json(const Comparison& comparison);

}  // namespace tessera
