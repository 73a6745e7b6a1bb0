#include "executor/bench/memory_peak.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>

namespace tessera {

MemoryPeak::MemoryPeak(const BenchSite& site) : device_(site.gpu() ? site.device.index() : -1) {
  if (device_ < 0) {
    std::ofstream("/proc/self/clear_refs") << "5";  // resets the high-water mark (proc(5))
    return;
  }
  torch::cuda::synchronize(device_);
  c10::cuda::CUDACachingAllocator::emptyCache();
  watch_ = std::jthread([this](const std::stop_token& stop) {
    cudaSetDevice(device_);
    while (!stop.stop_requested()) {
      std::size_t free = 0, total = 0;
      cudaMemGetInfo(&free, &total);
      peak_ = std::max(peak_.load(), static_cast<std::int64_t>(total - free));
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
}

std::int64_t MemoryPeak::bytes() const {
  if (device_ >= 0) return peak_;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) << 10;
  }
  return 0;
}

}  // namespace tessera
