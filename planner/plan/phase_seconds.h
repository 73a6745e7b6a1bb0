// Seconds by phase of one step.
//
// A plain value; phases that do not occur are zero.
#pragma once

#include "cost_models/spec/enum_array.h"
#include "cost_models/spec/units.h"
#include "cost_models/spec/workload.h"

namespace tessera {

using PhaseSeconds = EnumArray<Phase, Seconds>;

}  // namespace tessera
