// The device and the world of this rank, from its launch environment.
#pragma once

#include "executor/tensor/torch.h"

#include <atomic>
#include <memory>
#include <string>

#include "executor/comm/comm_times.h"
#include "executor/comm/communicator.h"
#include "executor/launch/launch_environment.h"
#include "executor/memory/memory_watch.h"
#include "executor/tensor/side_stream.h"

namespace tessera {

class FlightRecorder;

struct RankSetup {
  torch::Device device = torch::kCPU;
  std::unique_ptr<Communicator> world;        // on the device's memory
  std::unique_ptr<Communicator> host_staged;  // over `world` on a GPU, else null
  std::unique_ptr<DeviceClock> clock;         // null on the CPU
  std::unique_ptr<MemoryWatch> memory;        // never null
  int rank = 0, size = 1;
  void* stream = nullptr;  // cudaStream_t of every operation on a GPU

  /// For control data in host memory.
  Communicator& host() { return host_staged ? *host_staged : *world; }
};

/// `device`: "cpu", "cuda" or "auto" (a GPU for every rank of the host, or the CPU). Under no
/// launcher the world has one rank. torch computes with one thread per rank on the CPU, on a stream
/// of its own on a GPU. `timeout_s`: what a rank waits for its peers. `memory`: its limit.
/// `waiting` (outlives the world; may be nullptr) is true while a CPU rank waits for a message of a
/// peer. `recorder` (outlives the world; may be nullptr) notes the collectives of all groups.
RankSetup set_up_rank(const std::string& device, double timeout_s = 600,
                      const MemoryOptions& memory = {}, std::atomic<bool>* waiting = nullptr,
                      FlightRecorder* recorder = nullptr);

/// A stream for collectives beside the computation, and a world whose groups work on it. On the CPU
/// there is neither: collectives then happen in program order.
struct SideLane {
  SideStream stream;
  std::unique_ptr<Communicator> world;
};

/// Collective over the world.
SideLane make_side_lane(const RankSetup& setup);

}  // namespace tessera
