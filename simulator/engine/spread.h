// How a plan's step spreads over draws of the response lengths, and how surely it is known.
//
// A simulation is one draw; the same plan's next step has other lengths. Seconds per step.
// Deterministic by the seeds; a pure function.
#pragma once

#include <map>

#include "simulator/engine/plan_tasks.h"

namespace tessera {

/// Below which a tenth, a half and nine tenths of the draws lie: between two of them linearly in
/// their ranks (Hyndman and Fan 1996, definition 7).
struct Quantiles {
  double p10 = 0, p50 = 0, p90 = 0;
  bool operator==(const Quantiles&) const = default;
};

struct StepSpread {
  int draws = 0;
  Quantiles step_s;
  std::map<Phase, Quantiles> phases_s;
  /// One standard deviation of the draws, of what the constants leave open (the plan's
  /// step_error_s; 0 = unknown), and of both, which are independent.
  double draws_deviation_s = 0, constants_deviation_s = 0, deviation_s = 0;
  bool operator==(const StepSpread&) const = default;
};

/// Runs `draws` simulations with the options' seed and those that follow. Precondition: at least
/// one, else as build_iteration.
StepSpread spread_over_draws(const Plan& plan, const Calibration& calibration,
                             const SimulationOptions& options, int draws);

}  // namespace tessera
