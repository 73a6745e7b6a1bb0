// Tensors of a device, one behind the other, into host memory that is not pinned.
//
// Those of a GPU travel through two pinned buffers: while one is filled by the device, several
// threads empty the other. One thread, and others beside it while buffers are emptied; the copies
// are ordered behind the work of the current stream.
#pragma once

#include "executor/tensor/torch.h"

#include <c10/core/Event.h>

#include <array>
#include <cstdint>

namespace tessera {

class HostwardCopy {
 public:
  /// `to` has room for all that is appended. Buffers of `window` elements.
  HostwardCopy(float* to, torch::Device device, std::int64_t window = std::int64_t{16} << 20);

  /// Copies `from`, contiguous fp32 [n] on the device, behind what came before.
  void append(const torch::Tensor& from);
  /// Waits until all of it is there. Call it once, last.
  void finish();

 private:
  struct Buffer {
    torch::Tensor pinned;
    c10::Event done;
    std::int64_t first = 0, count = 0;  // elements of `to` that it holds
  };

  void turn();
  void empty(Buffer& buffer);

  float* to_;
  torch::Device device_;
  std::int64_t window_, next_ = 0;  // the first element of `to` that is not appended yet
  std::array<Buffer, 2> buffers_;
  int filled_ = 0;  // the buffer that is being filled
};

}  // namespace tessera
