// Many copies within a GPU's memory as one kernel: for the stages of a reshard.
//
// No torch in this header. One thread at a time.
#pragma once

#include "executor/storage/block_copies.h"

namespace tessera {

/// Keeps the lists of copies that it was given on the device, for when they come again. Empty where
/// Tessera's kernels were not built. `device` is a CUDA device's index.
CopyWithin make_range_copies(int device);

}  // namespace tessera
