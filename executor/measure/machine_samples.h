// Measures this machine for a calibration: GEMMs, memory, operators of a small decoder,
// collectives.
//
// All ranks of the world measure at once, so that what they share (caches, memory, links) is shared
// as it will be in a run. Compute on the CPU is counted in seconds of a core, which does not depend
// on how many ranks share one. Means over ranks. Collective.
#pragma once

#include "executor/tensor/torch.h"

#include <vector>

#include "cost_models/fit/calibration_fit.h"
#include "executor/comm/communicator.h"
#include "executor/tensor/side_stream.h"

namespace tessera {

struct MeasureOptions {
  torch::Device device = torch::kCPU;
  DType dtype = DType::fp32;
  double seconds_per_point = 0.02;  // spent on each size, at least three repetitions
  bool quick = true;                // fewer and smaller sizes
  double loaded_seconds = 2;        // of full load before and while sustained rates are measured
  /// Collectives beside the computation (GPUs); nullptr and none = what they cost it is not
  /// measured.
  Communicator* side_world = nullptr;
  SideStream side;
};

/// Equal on every rank. `host` shares the results and may be `world`.
std::vector<CalibrationSample> measure_machine(Communicator& world, Communicator& host,
                                               const MeasureOptions& options);

}  // namespace tessera
