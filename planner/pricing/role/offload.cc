#include "planner/pricing/role/offload.h"

#include <algorithm>

#include "cost_models/compute.h"
#include "planner/pricing/role/memory.h"

namespace tessera {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

}  // namespace

// Weights on entry; optimizer states in and out, once per phase or, streamed, once per step, unless
// the host computes the step (update_work).
double offload_seconds(const RoleLayout& layout, const Candidate& candidate, bool training,
                       double steps) {
  if (candidate.offload == Offload{}) return 0;
  const EngineTraits& traits = layout.assumed->traits();
  double bytes = 0;
  for (const StageClass& stage : *layout.stages) {
    const MemoryUse use = resident(layout, candidate, stage);
    double here = 0;
    if (candidate.offload.parameters) here += as_double(use.weights) * (training ? 2 : 1);
    if (training && candidate.offload.optimizer &&
        traits.optimizer.offloaded != OffloadedStates::on_host) {
      here += 2 * as_double(use.master_weights + use.optimizer) *
              (traits.optimizer.offloaded == OffloadedStates::streamed ? steps : 1.0);
    }
    bytes = std::max(bytes, here);
  }
  return host_copy_seconds(bytes, layout.assumed->calibration());
}

// 1.05 ms for 494 MB (4 H200, benchmarks/results/h200x4-switch-options.json).
double mapping_seconds(const RoleLayout& layout, const Candidate& candidate) {
  constexpr double kBytesPerSecond = 4.7e11;
  if (!candidate.offload.parameters) return 0;
  std::int64_t most = 0;
  for (const StageClass& stage : *layout.stages) {
    most = std::max(most, stage.elements.total());
  }
  return static_cast<double>(most * size_of(layout.model->dtypes.param)) / kBytesPerSecond;
}

}  // namespace tessera
