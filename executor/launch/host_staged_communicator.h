// A communicator on host memory over one that works on device memory.
//
// Small control data (experience, metrics, flags) lives on the host; on GPUs it travels through a
// device buffer of the wrapped communicator. Every call synchronises the stream. Not for weights or
// activations.
#pragma once

#include <memory>

#include "executor/comm/communicator.h"

namespace tessera {

/// `device` outlives the result; `device_index` is the CUDA device of this process.
std::unique_ptr<Communicator> make_host_staged(Communicator& device, int device_index);

}  // namespace tessera
