// Seconds by phase of one step.
//
// A plain value; index = Phase, phases that do not occur are zero.
#pragma once

#include <array>

#include "cost_models/spec/workload.h"

namespace tessera {

using PhaseSeconds = std::array<double, kPhaseCount>;

}  // namespace tessera
