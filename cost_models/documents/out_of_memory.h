// The end of a run for want of device memory: its exit code and its exception.
//
// Device memory is a GPU's, or what a run allows its ranks on CPUs. Bytes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "cost_models/documents/problem.h"

namespace tessera {

/// Of a run of which a rank ran out of memory; the run's oom.json says more.
inline constexpr ExitCode kOutOfMemory{71};

/// A request that was refused, other than torch's own (c10::OutOfMemoryError).
class OutOfMemory : public Error {
 public:
  /// `asked_by`: "arenas", "NCCL", ...; `requested`: bytes; 0 where nobody says how many were asked
  /// for.
  OutOfMemory(std::string asked_by, std::int64_t requested, const std::string& message)
      : Error(kOutOfMemory, message), asked_by_(std::move(asked_by)), requested_(requested) {}

  const std::string& asked_by() const { return asked_by_; }
  std::int64_t requested() const { return requested_; }

 private:
  std::string asked_by_;
  std::int64_t requested_;
};

}  // namespace tessera
