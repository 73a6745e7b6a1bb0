// The MPI world, from a module that is loaded only when asked for.
//
// The executable does not depend on MPI: libtessera_mpi.so, which does, is opened here. One world
// per process; buffers are host memory. Free of torch.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

#include "executor/comm/communicator.h"

namespace tessera {

struct MpiOptions {
  std::size_t piece_bytes = std::size_t{1} << 30;  // MPI counts are int: larger messages are cut
  std::atomic<bool>* waiting = nullptr;  // true while a message is waited for; outlives the world
  double timeout_s = 600;  // without progress of an operation for so long a peer counts as lost
};

/// The world of this process's mpirun (one rank when started bare). Initialises MPI; destroying the
/// last communicator finalises it, unless an exception is under way. Error (missing) without the
/// module or MPI's libraries.
std::unique_ptr<Communicator> open_mpi_world(const MpiOptions& options = {});

}  // namespace tessera
