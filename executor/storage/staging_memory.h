// Host memory that a GPU copies into at full rate, made in the background.
//
// Pages are touched by several threads and pinned piece by piece while the owner goes on: asked for
// at once, tens of gigabytes keep a process waiting for as many seconds. Pieces are pinned one by
// one, and a copy must not lie in two of them (`pieces`). Without a GPU nothing is pinned. Owned by
// whoever fills it; the memory goes with it. One thread beside its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace tessera {

/// How a range of memory is pinned for the GPU, and freed of it; `pin` says whether it is.
struct Pinning {
  std::function<bool(void* data, std::int64_t bytes)> pin;
  std::function<void(void* data)> unpin;
};
/// Of the CUDA runtime, for the current device. In the library tessera::storage_cuda.
Pinning cuda_pinning();

class StagingMemory {
 public:
  /// Begins to make it. Throws OutOfMemory where there are no addresses for it. What cannot be
  /// pinned is used as it is.
  StagingMemory(std::int64_t bytes, Pinning pinning, std::int64_t piece = std::int64_t{1} << 30);
  ~StagingMemory();
  StagingMemory(const StagingMemory&) = delete;
  StagingMemory& operator=(const StagingMemory&) = delete;

  /// Waits until all of it is there.
  void* data() const;
  std::int64_t bytes() const;
  /// Calls `part(first, bytes)` for the parts of [first, first + bytes), none of which lies in two
  /// pieces.
  void pieces(std::int64_t first, std::int64_t bytes,
              const std::function<void(std::int64_t first, std::int64_t bytes)>& part) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
