#include "executor/launch/host_staged_communicator.h"

#include "executor/tensor/torch.h"

#include <cstring>
#include <utility>
#include <vector>

#include "executor/comm/group_name.h"

namespace tessera {
namespace {

torch::Tensor host_view(const void* data, std::size_t bytes) {
  return torch::from_blob(const_cast<void*>(data), {static_cast<std::int64_t>(bytes)},
                          torch::kUInt8);
}

class HostStaged final : public Communicator, public NamedGroup {
 public:
  HostStaged(Communicator& device, int index) : device_(device), options_(options_for(index)) {}
  HostStaged(std::unique_ptr<Communicator> device, int index)
      : owned_(std::move(device)), device_(*owned_), options_(options_for(index)) {}

  int rank() const override { return device_.rank(); }
  int size() const override { return device_.size(); }

  void all_reduce(void* data, std::size_t count, DType type, ReduceOp op) override {
    const std::size_t bytes = count * size_of(type);
    torch::Tensor staged = upload(data, bytes);
    device_.all_reduce(staged.data_ptr(), count, type, op);
    download(staged, data, bytes);
  }

  void all_gather(const void* send, void* receive, std::size_t count, DType type) override {
    const std::size_t bytes = count * size_of(type);
    const torch::Tensor mine = upload(send, bytes);
    const torch::Tensor all = torch::empty({static_cast<std::int64_t>(bytes * size())}, options_);
    device_.all_gather(mine.data_ptr(), all.data_ptr(), count, type);
    download(all, receive, bytes * size());
  }

  void reduce_scatter(const void* send, void* receive, std::size_t count, DType type,
                      ReduceOp op) override {
    const std::size_t bytes = count * size_of(type);
    const torch::Tensor all = upload(send, bytes * size());
    const torch::Tensor mine = torch::empty({static_cast<std::int64_t>(bytes)}, options_);
    device_.reduce_scatter(all.data_ptr(), mine.data_ptr(), count, type, op);
    download(mine, receive, bytes);
  }

  void broadcast(void* data, std::size_t count, DType type, int root) override {
    const std::size_t bytes = count * size_of(type);
    torch::Tensor staged = upload(data, bytes);
    device_.broadcast(staged.data_ptr(), count, type, root);
    download(staged, data, bytes);
  }

  void all_to_all(const void* send, void* receive, std::size_t count, DType type) override {
    const std::size_t bytes = count * size_of(type) * size();
    const torch::Tensor from = upload(send, bytes);
    const torch::Tensor to = torch::empty_like(from);
    device_.all_to_all(from.data_ptr(), to.data_ptr(), count, type);
    download(to, receive, bytes);
  }

  void exchange(std::span<const SendBlock> sends, std::span<const ReceiveBlock> receives) override {
    std::vector<torch::Tensor> staged;
    std::vector<SendBlock> device_sends;
    std::vector<ReceiveBlock> device_receives;
    for (const SendBlock& block : sends) {
      staged.push_back(upload(block.data, block.bytes));
      device_sends.push_back({block.peer, staged.back().data_ptr(), block.bytes});
    }
    for (const ReceiveBlock& block : receives) {
      staged.push_back(torch::empty({static_cast<std::int64_t>(block.bytes)}, options_));
      device_receives.push_back({block.peer, staged.back().data_ptr(), block.bytes});
    }
    device_.exchange(device_sends, device_receives);
    for (std::size_t i = 0; i < receives.size(); ++i) {
      download(staged[sends.size() + i], receives[i].data, receives[i].bytes);
    }
  }

  void barrier() override { device_.barrier(); }
  void abort() override { device_.abort(); }
  void name_group(const std::string& name) override { tessera::name_group(device_, name); }

  std::unique_ptr<Communicator> split(std::span<const int> members) override {
    std::unique_ptr<Communicator> group = device_.split(members);
    if (group == nullptr) return nullptr;
    return std::make_unique<HostStaged>(std::move(group), options_.device().index());
  }

 private:
  static torch::TensorOptions options_for(int index) {
    return torch::TensorOptions().dtype(torch::kUInt8).device(torch::kCUDA, index);
  }
  torch::Tensor upload(const void* data, std::size_t bytes) const {
    return host_view(data, bytes).to(options_.device());
  }
  static void download(const torch::Tensor& from, void* data, std::size_t bytes) {
    if (bytes > 0) host_view(data, bytes).copy_(from);
  }

  std::unique_ptr<Communicator> owned_;  // of a group; the world belongs to the caller
  Communicator& device_;
  torch::TensorOptions options_;
};

}  // namespace

std::unique_ptr<Communicator> make_host_staged(Communicator& device, int device_index) {
  return std::make_unique<HostStaged>(device, device_index);
}

}  // namespace tessera
