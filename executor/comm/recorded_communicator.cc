#include "executor/comm/recorded_communicator.h"

#include <algorithm>
#include <string>
#include <utility>

#include "executor/comm/group_name.h"

namespace tessera {
namespace {

template <class Blocks>
std::int64_t total_bytes(const Blocks& blocks) {
  std::size_t sum = 0;
  for (const auto& block : blocks) sum += block.bytes;
  return static_cast<std::int64_t>(sum);
}

class RecordedCommunicator final : public Communicator, public NamedGroup {
 public:
  RecordedCommunicator(std::unique_ptr<Communicator> inner, FlightRecorder& recorder,
                       std::string path, std::string name)
      : inner_(std::move(inner)),
        recorder_(recorder),
        path_(std::move(path)),
        name_(std::move(name)),
        group_(recorder.add_group(path_, name_, inner_->size(), inner_->rank())) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }

  void all_reduce(void* data, std::size_t count, DType type, ReduceOp op) override {
    note({.kind = CollectiveKind::all_reduce, .bytes = bytes_of(count, type), .type = type},
         [&] { inner_->all_reduce(data, count, type, op); });
  }
  void all_gather(const void* send, void* receive, std::size_t count, DType type) override {
    note({.kind = CollectiveKind::all_gather, .bytes = all_of(count, type), .type = type},
         [&] { inner_->all_gather(send, receive, count, type); });
  }
  void all_gather_batch(std::span<const GatherBlock> blocks) override {
    note({.kind = CollectiveKind::all_gather, .bytes = total_bytes(blocks) * size()},
         [&] { inner_->all_gather_batch(blocks); });
  }
  void reduce_scatter(const void* send, void* receive, std::size_t count, DType type,
                      ReduceOp op) override {
    note({.kind = CollectiveKind::reduce_scatter, .bytes = all_of(count, type), .type = type},
         [&] { inner_->reduce_scatter(send, receive, count, type, op); });
  }
  void broadcast(void* data, std::size_t count, DType type, int root) override {
    note({.kind = CollectiveKind::broadcast,
          .bytes = bytes_of(count, type),
          .type = type,
          .root = root},
         [&] { inner_->broadcast(data, count, type, root); });
  }
  void all_to_all(const void* send, void* receive, std::size_t count, DType type) override {
    note({.kind = CollectiveKind::all_to_all, .bytes = all_of(count, type), .type = type},
         [&] { inner_->all_to_all(send, receive, count, type); });
  }
  void exchange(std::span<const SendBlock> sends, std::span<const ReceiveBlock> receives) override {
    note(call_of(sends, receives), [&] { inner_->exchange(sends, receives); });
  }
  void barrier() override {
    note({.kind = CollectiveKind::barrier}, [&] { inner_->barrier(); });
  }
  void abort() override { inner_->abort(); }
  void name_group(const std::string& name) override {
    name_ = name;
    recorder_.name_group(group_, name);
  }

  std::unique_ptr<Communicator> split(std::span<const int> members) override {
    const std::string path = path_of_split(path_, splits_, members);
    const std::string name = name_ + "/" + std::to_string(splits_++);
    std::unique_ptr<Communicator> group = inner_->split(members);
    if (group == nullptr) return nullptr;
    return std::make_unique<RecordedCommunicator>(std::move(group), recorder_, path, name);
  }

 private:
  static std::int64_t bytes_of(std::size_t count, DType type) {
    return static_cast<std::int64_t>(count) * size_of(type);
  }
  std::int64_t all_of(std::size_t count, DType type) const {
    return bytes_of(count, type) * size();
  }

  /// What throws has not ended: the record says what the rank waited in.
  template <class Fn>
  void note(const CollectiveCall& call, Fn fn) {
    const std::int64_t number = recorder_.begin(group_, call);
    fn();
    recorder_.end(number);
  }

  std::unique_ptr<Communicator> inner_;
  FlightRecorder& recorder_;
  std::string path_, name_;
  int group_, splits_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> recorded(std::unique_ptr<Communicator> world,
                                       FlightRecorder& recorder) {
  return std::make_unique<RecordedCommunicator>(std::move(world), recorder, "world", "world");
}

CollectiveCall call_of(std::span<const SendBlock> sends, std::span<const ReceiveBlock> receives) {
  CollectiveCall call{.kind = CollectiveKind::exchange,
                      .bytes = std::max(total_bytes(sends), total_bytes(receives))};
  for (const SendBlock& block : sends) call.peers |= peer_bit(block.peer);
  for (const ReceiveBlock& block : receives) call.peers |= peer_bit(block.peer);
  return call;
}

std::string path_of_split(const std::string& parent, int split, std::span<const int> members) {
  return parent + "/" + std::to_string(split) + "." +
         std::to_string(members.empty() ? -1 : members[0]);
}

}  // namespace tessera
