// How the ranks of a run find one another: from the launch environment to the world communicator.
//
// Ranks on CPUs meet through MPI. Ranks on GPUs exchange NCCL's id through a TCP store (torchrun's
// agent or rank 0 hosts it), or through MPI where mpirun names no meeting point. No torch in this
// header.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "executor/comm/communicator.h"
#include "executor/comm/nccl_world.h"
#include "executor/launch/launch_environment.h"

namespace tessera {

enum class DeviceKind { cpu, cuda };

struct WorldOptions {
  /// Equal on every rank, e.g. the plan's digest: ranks of different runs refuse one another.
  std::uint64_t token = 0;
  double join_timeout_s = 120;           // for the others to come
  double timeout_s = 600;                // of one operation
  std::atomic<bool>* waiting = nullptr;  // on CPUs, as MpiOptions has it
  FlightRecorder* recorder = nullptr;    // of all operations; outlives the world
  /// On GPUs; `device` is the local rank's and `board` the store's, whatever is given.
  NcclOptions nccl;
};

/// The world of this process. `stream` is a cudaStream_t for GPUs. Error (missing) where this
/// launcher cannot start ranks on this device, (bad_input) where tokens differ; PeerLost when ranks
/// do not come in time.
std::unique_ptr<Communicator> make_world(const LaunchEnvironment& launch, DeviceKind device,
                                         void* stream, const WorldOptions& options = {});

}  // namespace tessera
