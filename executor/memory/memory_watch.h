// MemoryWatch: a rank's limit of memory, and the account of it when a request is refused.
//
// One per process and device, made before the ranks meet; it lives as long as torch's allocator is
// used. On a GPU torch's caching allocator is held to the limit; on a CPU an allocator that counts
// takes the place of torch's, where there is a limit, and refuses what lies beyond it. Any thread.
// Bytes.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "executor/memory/memory_use.h"

namespace tessera {

struct MemoryOptions {
  std::int64_t limit_bytes = 0;  // of the rank, all classes together; 0 = the device's memory
  /// Settings of torch's allocator on a GPU, as PYTORCH_CUDA_ALLOC_CONF has them; empty = those of
  /// the environment.
  std::string allocator;
};

class MemoryWatch {
 public:
  /// `device`: index of a GPU whose context exists; -1 = the CPU. Error (bad_input) for settings
  /// that the allocator does not take.
  MemoryWatch(int device, const MemoryOptions& options);

  /// Holds torch to what the limit leaves beside all else that is in use now: to be called again
  /// when that has grown. OutOfMemory where the limit is exceeded already.
  void hold_limit() const;

  /// The account, now, of a request that was refused.
  MemoryRefusal refusal(const std::string& asked_by, std::int64_t requested) const;
  /// What ran out where `error` says that memory did: torch's refusals with the account of that
  /// moment, all others with that of now. nullopt for other errors.
  std::optional<MemoryRefusal> refusal_of(const std::exception& error) const;

  struct State;  // executor/memory/memory_watch.cc

 private:
  std::shared_ptr<State> state_;  // torch's allocators refer to it until the process ends
};

}  // namespace tessera
