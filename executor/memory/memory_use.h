// What a rank's memory holds, measured, and what it held when a request was refused.
//
// Plain data, bytes. On a GPU everything in use of the device is counted, that of other processes
// in `context`. On a CPU `tensors` are counted where the run limits memory; else they are part of
// `libraries`, which is then all that the process has resident.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

struct MemoryInUse {
  std::int64_t tensors = 0;    // allocated by torch
  std::int64_t idle = 0;       // reserved by torch's allocator, and in no tensor
  std::int64_t arenas = 0;     // weights that peers read or that are unmapped between generations
  std::int64_t context = 0;    // in use before the ranks met: the device's context
  std::int64_t libraries = 0;  // the rest: NCCL's buffers, libraries, other processes

  std::int64_t total() const { return tensors + idle + arenas + context + libraries; }
  bool operator==(const MemoryInUse&) const = default;
};

/// Tensors of one size.
struct LiveTensors {
  std::int64_t bytes = 0, count = 0;  // of each; how many
  bool operator==(const LiveTensors&) const = default;
};

/// A request that was refused, and what was in use then.
struct MemoryRefusal {
  std::string asked_by;        // "torch", "arenas", "NCCL", ...
  std::int64_t requested = 0;  // 0: nobody says
  std::int64_t limit = 0;      // of the run, or the device's memory
  MemoryInUse in_use;
  std::vector<LiveTensors> largest;  // descending by size; at most eight sizes
  std::string allocator;             // settings of torch's allocator; empty = its own defaults
};

}  // namespace tessera
