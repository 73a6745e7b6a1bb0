// A request whose plans may fill no more of a device than a stated limit.
//
// Pure. Bytes.
#pragma once

#include "cost_models/spec/units.h"
#include "planner/request/request.h"

namespace tessera {

/// Lowers the devices' memory so that usable_memory is at most `limit` on each; smaller devices
/// stay as they are. The request must have its calibration.
void cap_memory(PlanRequest& request, Bytes limit);

}  // namespace tessera
