// How far a plan's step may be off, from the covariance of the constants behind it.
//
// Pure functions. Gauss' law of propagation: the variance of a step is g' C g, with g the
// derivatives of the step by the logarithm of each constant (finite differences on the fixed plan)
// and C the covariance of relative deviations: fitted blocks (FitCovariance), every constant's own
// error on the diagonal, which holds held-out samples too, and each collective's error for its
// whole curve. Nothing in it speaks of what the model leaves out.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cost_models/spec/units.h"
#include "planner/plan/phase_seconds.h"
#include "planner/pricing/role/groups.h"
#include "planner/request/request.h"
#include "planner/request/solution.h"

namespace tessera {

/// d step / d ln(constant); named as constant_names, collectives "all_gather/8x1.bytes_per_s".
struct Sensitivity {
  std::string of;
  Seconds seconds;
};

/// The same by phase.
struct PhaseSensitivity {
  std::string of;
  PhaseSeconds phases;
  Seconds step;
};
std::vector<PhaseSensitivity> phase_sensitivities(const PlanRequest& request,
                                                  const Solution& solution, const Deal& deal = {});
/// Those of one phase.
std::vector<Sensitivity> of_phase(std::span<const PhaseSensitivity> sensitivities, Phase phase);

/// Of a solution's layouts and placement under `request`, of a plan's with its `deal`; constants
/// without effect are left out.
std::vector<Sensitivity> step_sensitivities(const PlanRequest& request, const Solution& solution,
                                            const Deal& deal = {});

/// One standard deviation of what they are of. For the difference of two plans pass the differences
/// of their sensitivities: what both share cancels.
Seconds step_deviation(std::span<const Sensitivity> sensitivities, const Calibration& calibration);

/// a - b, by name.
std::vector<Sensitivity> difference(std::span<const Sensitivity> a, std::span<const Sensitivity> b);

}  // namespace tessera
