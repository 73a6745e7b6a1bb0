// Host memory whose pages are there, made in the background.
//
// Pages are touched by several threads while the owner goes on: touched by a copy that fills them,
// tens of gigabytes keep a process waiting for as many seconds. They are not pinned: to pin 23 GB
// in each of four processes of one host took 45 s, during which no other call of the CUDA runtime
// got on. Owned by whoever fills it; the memory goes with it. One thread beside its own.
#pragma once

#include <cstdint>
#include <memory>

namespace tessera {

class BackgroundMemory {
 public:
  /// Begins to make it. Throws OutOfMemory where there are no addresses for it.
  explicit BackgroundMemory(std::int64_t bytes);
  ~BackgroundMemory();
  BackgroundMemory(const BackgroundMemory&) = delete;
  BackgroundMemory& operator=(const BackgroundMemory&) = delete;

  /// Waits until all of it is there.
  void* data() const;
  std::int64_t bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
