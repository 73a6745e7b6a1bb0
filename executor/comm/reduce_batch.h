// Several reduce-scatters at once, for communicators that can do them as one operation.
//
// Beside Communicator because few callers need it. Semantics, streams and threads are those of
// Communicator::reduce_scatter.
#pragma once

#include <cstddef>
#include <span>

#include "executor/comm/communicator.h"

namespace tessera {

/// `send` holds size() blocks of `count` elements; the sum of block r goes to rank r's `receive`.
struct ReduceBlock {
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;
};

/// An ability that a communicator has besides, if it can group reductions.
class BatchReducer {
 public:
  virtual ~BatchReducer() = default;
  virtual void reduce_scatter_batch(std::span<const ReduceBlock> blocks, DType type,
                                    ReduceOp op) = 0;
};

/// As one operation where the communicator is a BatchReducer, else one after another.
inline void reduce_scatter_batch(Communicator& group, std::span<const ReduceBlock> blocks,
                                 DType type, ReduceOp op) {
  if (auto* batch = dynamic_cast<BatchReducer*>(&group)) {
    return batch->reduce_scatter_batch(blocks, type, op);
  }
  for (const ReduceBlock& block : blocks) {
    group.reduce_scatter(block.send, block.receive, block.count, type, op);
  }
}

}  // namespace tessera
