#include "executor/storage/stream_barrier.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "executor/storage/cuda_calls.h"
#include "executor/storage/peer_blocks.h"

namespace tessera {
namespace {

/// Counters lie this far apart.
constexpr std::int64_t kSlotBytes = 128;

class DeviceBarrier final : public StreamBarrier {
 public:
  DeviceBarrier(int rank, int size, std::unique_ptr<SharedBlock> mine, PeerBlocks peers)
      : rank_(rank), size_(size), mine_(std::move(mine)), peers_(std::move(peers)) {}

  void meet(void* stream) override {
    ++generation_;
    std::vector<CUstreamBatchMemOpParams> operations;
    for (int peer = 0; peer < size_; ++peer) {
      if (peer != rank_) operations.push_back(write(slot(peers_.at(peer), rank_)));
    }
    for (int peer = 0; peer < size_; ++peer) {
      if (peer != rank_) operations.push_back(wait(slot(mine_->data(), peer)));
    }
    if (operations.empty()) return;
    static const auto batch = driver<decltype(&cuStreamBatchMemOp)>("cuStreamBatchMemOp");
    const CUresult code = batch(static_cast<CUstream>(stream),
                                static_cast<unsigned>(operations.size()), operations.data(), 0);
    if (code == CUDA_SUCCESS) return;
    throw Error(ExitCode::internal, "cuStreamBatchMemOp: error " + std::to_string(code));
  }

 private:
  static CUdeviceptr slot(void* block, int rank) {
    return reinterpret_cast<CUdeviceptr>(block) + static_cast<CUdeviceptr>(rank * kSlotBytes);
  }
  /// With the default flags everything before on the stream can be seen by who sees the value.
  CUstreamBatchMemOpParams write(CUdeviceptr address) const {
    CUstreamBatchMemOpParams made{};
    made.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    made.writeValue.address = address;
    made.writeValue.value = generation_;
    return made;
  }
  CUstreamBatchMemOpParams wait(CUdeviceptr address) const {
    CUstreamBatchMemOpParams made{};
    made.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    made.waitValue.address = address;
    made.waitValue.value = generation_;
    made.waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;  // cyclic: outlives the counter's range
    return made;
  }

  int rank_, size_;
  std::unique_ptr<SharedBlock> mine_;
  PeerBlocks peers_;
  std::uint32_t generation_ = 0;
};

}  // namespace

std::unique_ptr<StreamBarrier> make_stream_barrier(Communicator& host, int device) {
  std::unique_ptr<SharedBlock> mine = make_device_block(host.size() * kSlotBytes, device);
  PeerBlocks peers(host, mine.get());
  if (!peers.all_on_one_host()) return nullptr;
  return std::make_unique<DeviceBarrier>(host.rank(), host.size(), std::move(mine),
                                         std::move(peers));
}

}  // namespace tessera
