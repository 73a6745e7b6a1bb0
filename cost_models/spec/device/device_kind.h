// What a device is, by its name.
//
// Pure functions; any thread.
#pragma once

#include <string_view>

#include "cost_models/spec/cluster_spec.h"

namespace tessera {

/// Ranks are processes of a host's processors, and no GPU is there.
bool is_cpu(const DeviceSpec& device);

/// NVIDIA's compute capability times ten (80, 89, 90, 100) of a data centre's GPU whose name begins
/// as `device` does ("H200-SXM-141GB", and "H200" of a calibration); 0 = not known.
int compute_capability(std::string_view device);

}  // namespace tessera
