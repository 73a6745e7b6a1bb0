// Batches of copies from peers' blocks as part of a stream's work: the host waits for nothing.
//
// On a GPU copy engines move the bytes, on a stream of their own per peer; no multiprocessor is
// used. On the host it is memcpy. One thread at a time.
#pragma once

#include <memory>
#include <span>

#include "executor/storage/block_copies.h"

namespace tessera {

class StreamCopies {
 public:
  virtual ~StreamCopies() = default;
  /// The copies come after what `stream` (a cudaStream_t, ignored on the host) was given so far,
  /// and before what it is given later.
  virtual void run(std::span<const CopyBatch> batches, void* stream) = 0;
};

std::unique_ptr<StreamCopies> make_host_stream_copies();

/// In tessera::storage_cuda.
std::unique_ptr<StreamCopies> make_device_stream_copies(int device);

}  // namespace tessera
