// Batches of copies from peers' blocks to their final places.
//
// One batch per peer, on a GPU on a stream of its own: copy engines move the bytes and no
// multiprocessor is used. On the host it is memcpy. One thread, but mark_producer() may be called
// while another thread uses the rest.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "executor/storage/stream_barrier.h"

namespace tessera {

/// Copies from one peer (-1: within this rank's memory), as arrays that the driver takes.
struct CopyBatch {
  int peer = 0;
  std::vector<void*> to;
  std::vector<void*> from;
  std::vector<std::size_t> bytes;

  void add(void* target, const void* source, std::size_t size) {
    to.push_back(target);
    from.push_back(const_cast<void*>(source));
    bytes.push_back(size);
  }
};

class BlockCopies {
 public:
  virtual ~BlockCopies() = default;
  /// Returns when everything that was given to the producer's stream so far has happened: the
  /// sources are final.
  virtual void await_producer() = 0;
  /// A point of the producer's stream, and waiting for it. Marks are used up by waiting.
  virtual int mark_producer() = 0;
  virtual void await_mark(int mark) = 0;
  /// Begins the copies of all batches, in the order given.
  virtual void start(std::span<const CopyBatch> batches) = 0;
  /// Begins one batch after another, all ranks meeting behind each. Every rank brings as many;
  /// batches may be empty.
  virtual void start_in_steps(std::span<const CopyBatch> steps, StreamBarrier& barrier) {
    for (const CopyBatch& step : steps) {
      start({&step, 1});
      wait();
      barrier.meet(nullptr);
    }
  }
  /// Returns when all that was started has arrived.
  virtual void wait() = 0;
};

/// Copies at once, in start().
std::unique_ptr<BlockCopies> make_host_copies();

/// Copies of a batch within a device's memory, on `stream` (a cudaStream_t) and in its order.
/// `beside`: peers' copies into that memory are under way, which are not to be slowed.
using CopyWithin = std::function<void(const CopyBatch& batch, bool beside, void* stream)>;

/// `producer` is the cudaStream_t that writes the sources. `within`: the device's own way, where
/// calls of the runtime, one for each copy, take longer than the copies. In tessera::storage_cuda.
std::unique_ptr<BlockCopies> make_device_copies(int device, void* producer, CopyWithin within = {});

/// One batch on `stream`, a cudaStream_t other than the default one, in that stream's order; its
/// copies in any. Those that pitched_copies joins are one call each, the others one
/// cudaMemcpyBatchAsync. In tessera::storage_cuda.
void copy_on_stream(const CopyBatch& batch, void* stream);

}  // namespace tessera
