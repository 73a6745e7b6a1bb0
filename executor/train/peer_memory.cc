#include "executor/train/peer_memory.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <span>
#include <utility>

namespace tessera {

std::unique_ptr<PeerMemory> make_peer_memory(Communicator& host, std::int64_t elements,
                                             const torch::TensorOptions& options) {
  const torch::Device device = options.device();
  const std::int64_t bytes =
      std::max<std::int64_t>(elements, 1) * static_cast<std::int64_t>(options.dtype().itemsize());
  std::shared_ptr<SharedBlock> block =
      device.is_cuda() ? make_device_block(bytes, device.index()) : make_host_block(bytes);
  PeerBlocks blocks(host, block.get());
  if (!blocks.all_on_one_host()) return nullptr;
  torch::Tensor own = torch::from_blob(
      block->data(), {elements}, [block](void*) {}, options);
  return std::make_unique<PeerMemory>(std::move(blocks), std::move(own));
}

void copy_from_peer(const CopyBatch& batch, const torch::Device& device) {
  if (!device.is_cuda()) {
    make_host_copies()->start(std::span(&batch, 1));
    return;
  }
  const c10::impl::VirtualGuardImpl guard(device.type());
  copy_on_stream(batch, guard.getStream(device).native_handle());
}

}  // namespace tessera
