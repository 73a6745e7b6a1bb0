#include <cuda_runtime_api.h>
#include <nccl.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"
#include "executor/comm/group_name.h"
#include "executor/comm/nccl_channel.h"
#include "executor/comm/nccl_world.h"
#include "executor/comm/recorded_communicator.h"
#include "executor/comm/reduce_batch.h"

namespace tessera {
namespace {

ncclDataType_t nccl_type(DType type) {
  switch (type) {
    case DType::fp32:
      return ncclFloat32;
    case DType::bf16:
      return ncclBfloat16;
    case DType::fp16:
      return ncclFloat16;
    case DType::int64:
      return ncclInt64;
    case DType::int32:
      return ncclInt32;
    case DType::uint8:
      return ncclUint8;
  }
  return ncclUint8;
}
ncclRedOp_t nccl_op(ReduceOp op) { return op == ReduceOp::sum ? ncclSum : ncclMax; }
std::size_t bytes_of(std::size_t count, DType type) {
  return count * static_cast<std::size_t>(size_of(type));
}
const char* at(const void* data, std::size_t bytes) {
  return static_cast<const char*>(data) + bytes;
}
char* at(void* data, std::size_t bytes) { return static_cast<char*>(data) + bytes; }

ncclConfig_t config_of(const NcclOptions& options) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = options.blocking ? 1 : 0;
  config.splitShare = options.share_resources ? 1 : 0;
  if (options.cta_policy == CtaPolicy::efficiency) config.CTAPolicy = NCCL_CTA_POLICY_EFFICIENCY;
  if (options.cta_policy == CtaPolicy::zero) config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
  return config;
}

/// NCCL runs the i-th message to a peer beside the i-th one from it, and the next ones when both
/// have ended: pairs of about one size keep both directions busy. Both ends sort alike, so messages
/// still match in order.
template <class Block>
std::vector<Block> largest_first(std::span<const Block> blocks) {
  std::vector<Block> sorted(blocks.begin(), blocks.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Block& a, const Block& b) { return a.bytes > b.bytes; });
  return sorted;
}

class NcclCommunicator final : public Communicator, public BatchReducer, public NamedGroup {
 public:
  NcclCommunicator(std::shared_ptr<NcclWatchdog> watchdog, std::unique_ptr<NcclChannel> channel,
                   int rank)
      : watchdog_(std::move(watchdog)), channel_(std::move(channel)), rank_(rank) {
    size_ = static_cast<int>(channel_->global_ranks().size());
    check_cuda(cudaMalloc(reinterpret_cast<void**>(&flag_), sizeof(*flag_)));
    check_cuda(cudaMemset(flag_, 0, sizeof(*flag_)));
    if (FlightRecorder* recorder = channel_->recorder()) {
      recorded_ = recorder->add_group(channel_->name(), channel_->name(), size_, rank_);
      channel_->record_as(recorded_);
    }
    watchdog_->add(channel_.get());
  }
  ~NcclCommunicator() override {
    watchdog_->remove(channel_.get());
    for (ncclWindow_t window : windows_) {
      if (window != nullptr) channel_->deregister(window);
    }
    channel_.reset();
    cudaFree(flag_);
  }

  const NcclOptions& options() const { return channel_->options(); }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void all_reduce(void* data, std::size_t count, DType type, ReduceOp op) override {
    work({.kind = CollectiveKind::all_reduce, .type = type}, bytes_of(count, type),
         [&](ncclComm_t comm) {
           return ncclAllReduce(data, data, count, nccl_type(type), nccl_op(op), comm, stream());
         });
  }
  void all_gather(const void* send, void* receive, std::size_t count, DType type) override {
    work({.kind = CollectiveKind::all_gather, .type = type}, all_of(bytes_of(count, type)),
         [&](ncclComm_t comm) {
           return ncclAllGather(send, receive, count, nccl_type(type), comm, stream());
         });
  }
  void reduce_scatter(const void* send, void* receive, std::size_t count, DType type,
                      ReduceOp op) override {
    work({.kind = CollectiveKind::reduce_scatter, .type = type}, all_of(bytes_of(count, type)),
         [&](ncclComm_t comm) {
           return ncclReduceScatter(send, receive, count, nccl_type(type), nccl_op(op), comm,
                                    stream());
         });
  }
  void all_gather_batch(std::span<const GatherBlock> blocks) override {
    std::size_t bytes = 0;
    for (const GatherBlock& block : blocks) bytes += block.bytes;
    grouped({.kind = CollectiveKind::all_gather}, all_of(bytes), blocks,
            [&](const GatherBlock& block, ncclComm_t comm) {
              return ncclAllGather(block.send, block.receive, block.bytes, ncclUint8, comm,
                                   stream());
            });
  }
  void reduce_scatter_batch(std::span<const ReduceBlock> blocks, DType type, ReduceOp op) override {
    std::size_t count = 0;
    for (const ReduceBlock& block : blocks) count += block.count;
    grouped({.kind = CollectiveKind::reduce_scatter, .type = type}, all_of(bytes_of(count, type)),
            blocks, [&](const ReduceBlock& block, ncclComm_t comm) {
              return ncclReduceScatter(block.send, block.receive, block.count, nccl_type(type),
                                       nccl_op(op), comm, stream());
            });
  }
  void broadcast(void* data, std::size_t count, DType type, int root) override {
    work({.kind = CollectiveKind::broadcast, .type = type, .root = root}, bytes_of(count, type),
         [&](ncclComm_t comm) {
           return ncclBroadcast(data, data, count, nccl_type(type), root, comm, stream());
         });
  }
  void all_to_all(const void* send, void* receive, std::size_t count, DType type) override {
    const std::size_t bytes = bytes_of(count, type);
    std::vector<SendBlock> sends;
    std::vector<ReceiveBlock> receives;
    for (int r = 0; r < size_; ++r) {
      sends.push_back({r, at(send, static_cast<std::size_t>(r) * bytes), bytes});
      receives.push_back({r, at(receive, static_cast<std::size_t>(r) * bytes), bytes});
    }
    exchange_as({.kind = CollectiveKind::all_to_all,
                 .bytes = static_cast<std::int64_t>(all_of(bytes)),
                 .type = type},
                sends, receives);
  }

  void exchange(std::span<const SendBlock> sends, std::span<const ReceiveBlock> receives) override {
    exchange_as(call_of(sends, receives), sends, receives);
  }

  void barrier() override {
    const std::int64_t number = work({.kind = CollectiveKind::barrier}, 0, [&](ncclComm_t comm) {
      return ncclAllReduce(flag_, flag_, 1, ncclInt32, ncclMax, comm, stream());
    });
    channel_->wait_for_stream();
    if (channel_->recorder() != nullptr) channel_->recorder()->end(number);
  }

  void name_group(const std::string& name) override {
    if (channel_->recorder() != nullptr) channel_->recorder()->name_group(recorded_, name);
  }

  void abort() override {
    const int mine = channel_->global_ranks()[static_cast<std::size_t>(rank_)];
    channel_->announce_and_give_up(mine, "the group was aborted here");
  }

  std::unique_ptr<Communicator> split(std::span<const int> members) override {
    return split_with(members, channel_->options());
  }

  std::unique_ptr<NcclCommunicator> split_with(std::span<const int> members,
                                               const NcclOptions& options) {
    const auto mine = std::find(members.begin(), members.end(), rank_);
    const bool listed = mine != members.end();
    const int place = static_cast<int>(mine - members.begin());
    const std::string name = path_of_split(channel_->name(), splits_++, members);
    std::vector<int> global_ranks;
    for (const int member : members) {
      global_ranks.push_back(channel_->global_ranks()[static_cast<std::size_t>(member)]);
    }
    channel_->wait_for_stream();
    auto made = std::make_unique<NcclChannel>(options, name, std::move(global_ranks));
    ncclConfig_t config = config_of(options);
    channel_->call([&](ncclComm_t comm) {
      return ncclCommSplit(comm, listed ? members[0] : NCCL_SPLIT_NOCOLOR, place, made->slot(),
                           &config);
    });
    if (!listed) return nullptr;
    made->settle();
    return std::make_unique<NcclCommunicator>(watchdog_, std::move(made), place);
  }

  std::shared_ptr<const void> register_memory(const WindowMemory& memory) {
    void* handle = nullptr;
    channel_->call([&](ncclComm_t comm) {
      return ncclCommRegister(comm, memory.data, memory.bytes, &handle);
    });
    return {handle, [channel = channel_.get()](const void* registration) {
              channel->deregister(const_cast<void*>(registration));
            }};
  }

  void register_window(const WindowMemory& memory) {
    ncclWindow_t& window = windows_.emplace_back();
    channel_->call([&](ncclComm_t comm) {
      return ncclCommWindowRegister(comm, memory.data, memory.bytes, &window,
                                    NCCL_WIN_COLL_SYMMETRIC);
    });
  }

 private:
  cudaStream_t stream() const { return channel_->stream(); }

  std::size_t all_of(std::size_t bytes) const { return bytes * static_cast<std::size_t>(size_); }

  template <class Fn>
  std::int64_t work(CollectiveCall call, std::size_t bytes, Fn fn) {
    call.bytes = static_cast<std::int64_t>(bytes);
    return channel_->work(call, fn);
  }

  void exchange_as(const CollectiveCall& call, std::span<const SendBlock> sends,
                   std::span<const ReceiveBlock> receives) {
    channel_->work(call, [&](ncclComm_t comm) { return post_messages(sends, receives, comm); });
    auto send = sends.begin();
    for (const ReceiveBlock& receive : receives) {
      if (receive.peer != rank_) continue;
      while (send != sends.end() && send->peer != rank_) ++send;
      TESSERA_CHECK(send != sends.end() && send->bytes == receive.bytes);
      if (receive.bytes != 0) {
        check_cuda(cudaMemcpyAsync(receive.data, send->data, receive.bytes,
                                   cudaMemcpyDeviceToDevice, stream()));
      }
      ++send;
    }
  }

  /// One operation of many: NCCL runs them in one kernel.
  template <class Block, class Post>
  void grouped(const CollectiveCall& call, std::size_t bytes, std::span<const Block> blocks,
               Post post) {
    if (blocks.empty()) return;
    work(call, bytes, [&](ncclComm_t comm) {
      ncclResult_t first = ncclGroupStart();
      const auto note = [&](ncclResult_t code) {
        if (first == ncclSuccess || first == ncclInProgress) first = code;
      };
      for (const Block& block : blocks) note(post(block, comm));
      note(ncclGroupEnd());
      return first;
    });
  }

  ncclResult_t post_messages(std::span<const SendBlock> sends,
                             std::span<const ReceiveBlock> receives, ncclComm_t comm) const {
    ncclResult_t first = ncclGroupStart();
    const auto note = [&](ncclResult_t code) {
      if (first == ncclSuccess || first == ncclInProgress) first = code;
    };
    for (const SendBlock& block : largest_first(sends)) {
      if (block.peer == rank_ || block.bytes == 0) continue;
      note(ncclSend(block.data, block.bytes, ncclUint8, block.peer, comm, stream()));
    }
    for (const ReceiveBlock& block : largest_first(receives)) {
      if (block.peer == rank_ || block.bytes == 0) continue;
      note(ncclRecv(block.data, block.bytes, ncclUint8, block.peer, comm, stream()));
    }
    note(ncclGroupEnd());
    return first;
  }

  std::shared_ptr<NcclWatchdog> watchdog_;
  std::unique_ptr<NcclChannel> channel_;
  int rank_, size_ = 1;
  int splits_ = 0;
  int recorded_ = FlightRecorder::kNoGroup;
  std::int32_t* flag_ = nullptr;
  std::vector<ncclWindow_t> windows_;
};

/// The header that was compiled and the library that was loaded must be the same release.
void check_version() {
  int version = 0;
  ncclGetVersion(&version);
  if (version == NCCL_VERSION_CODE) return;
  throw Error(ExitCode::missing, "NCCL " + std::to_string(version) + " was loaded, " +
                                     std::to_string(NCCL_VERSION_CODE) +
                                     " was compiled: put the torch wheel's nvidia/nccl/lib first "
                                     "on LD_LIBRARY_PATH");
}

/// Before the first NCCL call, which reads the environment.
void keep_multicast_off() { ::setenv("NCCL_NVLS_ENABLE", "0", 0); }

}  // namespace

NcclId make_nccl_id() {
  check_version();
  keep_multicast_off();
  ncclUniqueId id;
  const ncclResult_t code = ncclGetUniqueId(&id);
  if (code != ncclSuccess) {
    throw Error(ExitCode::missing, std::string("NCCL: ") + ncclGetErrorString(code));
  }
  NcclId made;
  static_assert(sizeof(id.internal) == sizeof(made));
  std::memcpy(made.data(), id.internal, sizeof(made));
  return made;
}

std::unique_ptr<Communicator> make_nccl_world(const NcclId& id, int rank, int size,
                                              const NcclOptions& options) {
  check_version();
  keep_multicast_off();
  if (options.device >= cuda_device_count()) {
    throw Error(ExitCode::missing, "GPU " + std::to_string(options.device) + " of " +
                                       std::to_string(cuda_device_count()) + " on this host");
  }
  check_cuda(cudaSetDevice(options.device));
  std::vector<int> ranks(static_cast<std::size_t>(size));
  for (int r = 0; r < size; ++r) ranks[static_cast<std::size_t>(r)] = r;
  auto channel = std::make_unique<NcclChannel>(options, "world", std::move(ranks));
  ncclUniqueId unique;
  std::memcpy(unique.internal, id.data(), id.size());
  ncclConfig_t config = config_of(options);
  channel->call([&](ncclComm_t) {
    return ncclCommInitRankConfig(channel->slot(), size, unique, rank, &config);
  });
  auto watchdog = std::make_shared<NcclWatchdog>(options.device);
  return std::make_unique<NcclCommunicator>(std::move(watchdog), std::move(channel), rank);
}

std::unique_ptr<Communicator> split_with_windows(Communicator& world, std::span<const int> members,
                                                 CtaPolicy policy,
                                                 std::span<const WindowMemory> windows) {
  auto& nccl = dynamic_cast<NcclCommunicator&>(world);
  NcclOptions options = nccl.options();
  options.cta_policy = policy;
  std::unique_ptr<NcclCommunicator> group = nccl.split_with(members, options);
  for (const WindowMemory& window : windows) {
    if (group != nullptr) group->register_window(window);
  }
  return group;
}

std::shared_ptr<const void> register_memory(Communicator& group, const WindowMemory& memory) {
  return dynamic_cast<NcclCommunicator&>(group).register_memory(memory);
}

std::unique_ptr<Communicator> split_on_stream(Communicator& world, std::span<const int> members,
                                              void* stream) {
  auto& nccl = dynamic_cast<NcclCommunicator&>(world);
  NcclOptions options = nccl.options();
  options.stream = stream;
  return nccl.split_with(members, options);
}

int cuda_device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

}  // namespace tessera
