#include "executor/tensor/peer_memory.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <span>
#include <utility>

namespace tessera {
namespace {

/// The cudaStream_t that torch works on.
void* current_stream(const torch::Device& device) {
  const c10::impl::VirtualGuardImpl guard(device.type());
  return guard.getStream(device).native_handle();
}

}  // namespace

PeerMemory::PeerMemory(Communicator& host, PeerBlocks blocks, torch::Tensor own)
    : host_(host), blocks_(std::move(blocks)), own_(std::move(own)) {
  if (own_.is_cuda()) barrier_ = make_stream_barrier(host_, own_.device().index());
}

void PeerMemory::copy(const CopyBatch& batch) const {
  if (own_.is_cuda()) return copy_on_stream(batch, current_stream(own_.device()));
  make_host_copies()->start(std::span(&batch, 1));
}

void PeerMemory::meet() {
  if (own_.is_cuda()) return barrier_->meet(current_stream(own_.device()));
  host_.barrier();
}

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
  return std::unique_ptr<PeerMemory>(new PeerMemory(host, std::move(blocks), std::move(own)));
}

}  // namespace tessera
