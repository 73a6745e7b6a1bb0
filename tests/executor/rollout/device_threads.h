// A group of threads that share one GPU: messages pass through host memory.
//
// NCCL wants a GPU for each rank; a test of what ranks compute together does not. Every call waits
// for torch's current stream.
#pragma once

#include <stdexcept>

#include "executor/comm/communicator.h"
#include "executor/tensor/torch.h"

namespace tessera::testing {

class DeviceThreads final : public Communicator {
 public:
  /// `host`: the same ranks on host memory.
  explicit DeviceThreads(Communicator& host) : host_(host) {}

  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }

  void all_reduce(void* data, std::size_t count, DType type, ReduceOp op) override {
    const torch::Tensor there = view(data, count * size_of(type)), here = there.cpu();
    host_.all_reduce(here.data_ptr(), count, type, op);
    there.copy_(here);
  }
  void all_gather(const void* send, void* receive, std::size_t count, DType type) override {
    const std::size_t bytes = count * size_of(type);
    const torch::Tensor mine = view(const_cast<void*>(send), bytes).cpu();
    const torch::Tensor all =
        torch::empty({static_cast<std::int64_t>(bytes) * size()}, torch::kByte);
    host_.all_gather(mine.data_ptr(), all.data_ptr(), count, type);
    view(receive, bytes * static_cast<std::size_t>(size())).copy_(all);
  }
  void barrier() override { host_.barrier(); }
  void abort() override { host_.abort(); }

  void reduce_scatter(const void*, void*, std::size_t, DType, ReduceOp) override { unused(); }
  void broadcast(void*, std::size_t, DType, int) override { unused(); }
  void all_to_all(const void*, void*, std::size_t, DType) override { unused(); }
  void exchange(std::span<const SendBlock>, std::span<const ReceiveBlock>) override { unused(); }
  std::unique_ptr<Communicator> split(std::span<const int>) override { unused(); }

 private:
  [[noreturn]] static void unused() { throw std::logic_error("no test on one GPU asks for it"); }
  static torch::Tensor view(void* data, std::size_t bytes) {
    return torch::from_blob(data, {static_cast<std::int64_t>(bytes)},
                            torch::TensorOptions().dtype(torch::kByte).device(torch::kCUDA));
  }

  Communicator& host_;
};

}  // namespace tessera::testing
