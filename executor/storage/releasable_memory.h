// Memory whose pages can be given back while its addresses stay (storage `unmap`).
//
// A rank's rollout weights between generations: what is released is never exported to peers. On the
// host anonymous pages, on a GPU a cuMem allocation behind reserved addresses. One thread at a
// time.
#pragma once

#include <cstdint>
#include <memory>

namespace tessera {

class ReleasableMemory {
 public:
  virtual ~ReleasableMemory() = default;
  virtual void* data() const = 0;
  virtual std::int64_t bytes() const = 0;
  virtual bool mapped() const = 0;
  /// Gives the pages back. What was there is lost, and using it is a fault until map(). Nothing may
  /// be at work on it: streams are the caller's to wait for.
  virtual void release() = 0;
  /// Pages behind the same addresses again, contents undefined. Nothing where they are there.
  /// OutOfMemory when there is not enough memory; it can be tried again.
  virtual void map() = 0;
};

/// Both come mapped and zero filled.
std::unique_ptr<ReleasableMemory> make_releasable_host_memory(std::int64_t bytes);
/// In the library tessera::storage_cuda.
std::unique_ptr<ReleasableMemory> make_releasable_device_memory(std::int64_t bytes, int device);

}  // namespace tessera
