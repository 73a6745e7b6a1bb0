// Casts and checksums on a GPU: by Tessera's kernels, or by torch's where those were not built.
//
// Operations are put on torch's current stream; those that return numbers wait for it. Scratch
// memory is bounded by 256 MiB. No torch in this header.
#pragma once

#include <memory>

#include "executor/arena/memory_ops.h"

namespace tessera {

/// `device` is a CUDA device's index.
std::unique_ptr<MemoryOps> make_torch_memory_ops(int device);

}  // namespace tessera
