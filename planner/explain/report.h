// A plan and its certificate as text, for `tessera plan` and `tessera explain`.
//
// Pure functions; lines end with '\n' and stay within about 110 columns.
#pragma once

#include <string>

#include "planner/explain/infeasible.h"

namespace tessera {

struct Plan;

/// Roles with ranks, layout and memory against the limit (usable_memory under the plan's risk and
/// the calibration; the device's memory without one); phases with seconds and share; reshard bytes
/// against the full gather; runner-ups; certificate and margin; which constants are measured.
std::string describe(const Plan& plan, const Calibration* calibration = nullptr);

/// How long the generation's GPUs wait for the front end of their server; empty where they do not.
std::string describe_front_end(const Plan& plan, const Calibration& calibration);

/// The certificate alone: runner-ups and margin, in the objective's unit.
std::string describe_certificate(const Plan& plan);

/// Reasons and the nearest fix.
std::string describe(const Infeasible& infeasible);

}  // namespace tessera
