#include "planner/pricing/role/offload.h"

#include <algorithm>

#include "cost_models/compute.h"
#include "planner/pricing/role/memory.h"
#include "planner/pricing/role/shards.h"

namespace tessera {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

}  // namespace

// Weights on entry; optimizer states in and out, once per phase or, streamed, once per step, unless
// the host computes the step (update_work).
Seconds offload_seconds(const RoleLayout& layout, const Candidate& candidate, bool training,
                        double steps) {
  if (candidate.offload == Offload{}) return {};
  const EngineTraits& traits = layout.assumed->traits();
  Traffic bytes;
  for (const StageClass& stage : *layout.stages) {
    const bool borrowed = candidate.role == Role::reference && layout.model->lora.used();
    const MemoryUse use =
        borrowed ? frozen_weights(layout, candidate, stage) : resident(layout, candidate, stage);
    Traffic here;
    if (candidate.offload.parameters && !fetches_layers(layout))
      here += Traffic{as_double(use.weights)} * (training ? 2 : 1);
    if (training && candidate.offload.optimizer &&
        traits.optimizer.offloaded != OffloadedStates::on_host) {
      here += 2 * Traffic{as_double(use.master_weights + use.optimizer)} *
              (traits.optimizer.offloaded == OffloadedStates::streamed ? steps : 1.0);
    }
    bytes = std::max(bytes, here);
  }
  return host_copy_seconds(bytes, layout.assumed->calibration());
}

// 1.05 ms for 494 MB (4 H200, benchmarks/results/h200x4-switch-options.json).
Seconds mapping_seconds(const RoleLayout& layout, const Candidate& candidate) {
  constexpr BytesPerSecond kRate{4.7e11};
  if (!candidate.offload.parameters) return {};
  std::int64_t most = 0;
  for (const StageClass& stage : *layout.stages) {
    most = std::max(most, stage.elements.total());
  }
  return Bytes{most * size_of(layout.model->dtypes.param)} / kRate;
}

}  // namespace tessera
