// An allocator of CPU tensors that counts what is alive and refuses what a limit forbids.
//
// Installed once, for the process. Any thread. Bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

namespace tessera {

/// What tensors hold.
struct CountedTensors {
  std::mutex mutex;
  std::int64_t bytes = 0;
  std::map<std::int64_t, std::int64_t> count_of;  // tensors alive, by their size
};

/// Makes it torch's allocator on the CPU. `admit` is asked before every allocation of so many
/// bytes, without the lock, and throws where it must not be.
void install_counting_allocator(std::shared_ptr<CountedTensors> counted,
                                std::function<void(std::int64_t bytes)> admit);

}  // namespace tessera
