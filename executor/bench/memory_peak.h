// MemoryPeak: the most memory in use on this rank while it lives.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "executor/bench/reshard_rig.h"

namespace tessera {

/// The most memory in use since it was made: of this rank's GPU, looked at every 20 ms, or resident
/// in the process.
class MemoryPeak {
 public:
  explicit MemoryPeak(const BenchSite& site);
  std::int64_t bytes() const;

 private:
  int device_;  // -1 = the process
  std::atomic<std::int64_t> peak_{0};
  std::jthread watch_;
};

}  // namespace tessera
