// Bytes of memory that this process' blocks hold, which no allocator of torch's counts.
//
// Blocks count themselves in while they hold memory. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace tessera {

/// All blocks of one kind of memory.
struct HeldBytes {
  std::atomic<std::int64_t> bytes{0};
};

/// Of host memory; of the device's: device_block_bytes (shared_block.h).
HeldBytes& held_host_bytes();

/// Counted while it lives.
class Held {
 public:
  Held(HeldBytes& all, std::int64_t bytes) : all_(&all), bytes_(bytes) { all_->bytes += bytes_; }
  ~Held() { all_->bytes -= bytes_; }
  Held(const Held&) = delete;

 private:
  HeldBytes* all_;
  std::int64_t bytes_;
};

}  // namespace tessera
