#include "executor/memory/phase_memory.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <string>
#include <utility>

namespace tessera {
namespace {

double gib(std::int64_t bytes) { return static_cast<double>(bytes) / (1LL << 30); }

/// Of torch's counters: blocks of both pools together.
constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);

}  // namespace

PhaseMemory::Part::Part(PhaseMemory& memory, Phase phase) : memory_(memory), phase_(phase) {
  if (memory_.device_.is_cuda()) {
    c10::cuda::CUDACachingAllocator::resetPeakStats(memory_.device_.index());
  }
}

PhaseMemory::Part::~Part() {
  if (!memory_.device_.is_cuda()) return;
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(memory_.device_.index());
  std::size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  Bytes& most = memory_.most_[phase_];
  most.allocated = std::max(most.allocated, stats.allocated_bytes[kAll].peak);
  most.reserved = std::max(most.reserved, stats.reserved_bytes[kAll].peak);
  most.device = std::max(most.device, static_cast<std::int64_t>(total - free));
}

Metrics PhaseMemory::take() {
  Metrics metrics;
  Bytes all;
  for (const auto& [phase, most] : std::exchange(most_, {})) {
    const std::string prefix = "memory_gib/" + std::string(name_of(phase));
    metrics[prefix + "/allocated"] = gib(most.allocated);
    metrics[prefix + "/reserved"] = gib(most.reserved);
    metrics[prefix + "/device"] = gib(most.device);
    all.allocated = std::max(all.allocated, most.allocated);
    all.reserved = std::max(all.reserved, most.reserved);
  }
  if (metrics.empty()) return metrics;
  metrics["perf/max_memory_allocated_gb"] = gib(all.allocated);
  metrics["perf/max_memory_reserved_gb"] = gib(all.reserved);
  return metrics;
}

}  // namespace tessera
