// A barrier of a host's ranks on their streams.
//
// Each GPU writes a counter into the others' memory and waits for theirs, by its front end: no
// multiprocessor spins, and none has to be free. The streams that wait should have a priority of
// their own, so that they share no hardware queue with the computation. One thread per object.
#pragma once

#include <memory>

#include "executor/comm/communicator.h"

namespace tessera {

class StreamBarrier {
 public:
  virtual ~StreamBarrier() = default;
  /// Work that follows on `stream` (a cudaStream_t) begins once everybody's work before is done and
  /// can be read.
  virtual void meet(void* stream) = 0;
};

/// Collective over `host`, a communicator on host memory; one device per rank. nullptr on all ranks
/// unless all are on one host. In tessera::storage_cuda.
std::unique_ptr<StreamBarrier> make_stream_barrier(Communicator& host, int device);

}  // namespace tessera
