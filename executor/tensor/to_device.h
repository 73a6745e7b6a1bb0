// Host values for a device without waiting for it.
#pragma once

#include "executor/tensor/torch.h"

namespace tessera {

/// A copy on `device`; the host goes on at once (through pinned memory where the device is a GPU).
inline torch::Tensor to_device(const torch::Tensor& host, torch::Device device) {
  if (!device.is_cuda()) return host.to(device);
  return host.pin_memory().to(device, /*non_blocking=*/true);
}

}  // namespace tessera
