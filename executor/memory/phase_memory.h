// How much of this rank's GPU each phase took at its fullest: tensors, what torch's allocator holds
// for them, and all that is in use on the device (arenas, NCCL and libraries lie outside of torch).
//
// Bytes are read from torch's own counters and from the driver at the end of a phase. Owned by the
// training loop; one thread. On CPU ranks nothing is recorded.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>
#include <map>

#include "cost_models/spec/workload.h"
#include "executor/records/step_metrics.h"

namespace tessera {

class PhaseMemory {
 public:
  explicit PhaseMemory(torch::Device device) : device_(device) {}

  /// Counts its lifetime towards a phase.
  class Part {
   public:
    Part(PhaseMemory& memory, Phase phase);
    ~Part();
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

   private:
    PhaseMemory& memory_;
    Phase phase_;
  };

  /// Since the last call: `memory_gib/PHASE/allocated`, `/reserved` and `/device` of every phase,
  /// and verl's `perf/max_memory_allocated_gb` and `perf/max_memory_reserved_gb` (both in GiB, as
  /// verl divides by 1024^3) over all of them.
  Metrics take();

 private:
  struct Bytes {
    std::int64_t allocated = 0, reserved = 0, device = 0;
  };
  torch::Device device_;
  std::map<Phase, Bytes> most_;
};

}  // namespace tessera
