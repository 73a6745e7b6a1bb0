#include <cuda_runtime_api.h>
#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <set>
#include <thread>

#include "cost_models/spec/problem.h"
#include "executor/comm/nccl_world.h"
#include "executor/comm/reduce_batch.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

void check_cuda(cudaError_t code) {
  if (code == cudaSuccess) return;
  throw Error(ExitCode::internal, std::string("CUDA: ") + cudaGetErrorString(code));
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

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

/// One ncclComm_t with what the watchdog needs to judge it. Every NCCL call on it happens under the
/// lock and returns soon, so that an abort from another thread never meets a call under way.
class Channel {
 public:
  Channel(const NcclOptions& options, std::string name, std::vector<int> global_ranks)
      : options_(options), name_(std::move(name)), global_ranks_(std::move(global_ranks)) {
    check_cuda(cudaEventCreateWithFlags(&last_work_, cudaEventDisableTiming));
  }
  /// Peers may still read from this rank: ends together with them, unless something failed.
  ~Channel() {
    if (comm_ != nullptr) {
      const bool ended = std::uncaught_exceptions() == 0 && finalized();
      ended ? ncclCommDestroy(comm_) : ncclCommAbort(comm_);
    }
    cudaEventDestroy(last_work_);
  }
  Channel(const Channel&) = delete;

  const NcclOptions& options() const { return options_; }
  const std::string& name() const { return name_; }
  const std::vector<int>& global_ranks() const { return global_ranks_; }
  cudaStream_t stream() const { return static_cast<cudaStream_t>(options_.stream); }

  /// Calls NCCL with the communicator and waits until the call has been taken in.
  template <class Fn>
  void call(Fn fn) {
    {
      const std::lock_guard lock(mutex_);
      throw_if_lost();
      judge(fn(comm_));
    }
    settle();
  }
  /// As call(), for work on the stream.
  template <class Fn>
  void work(Fn fn) {
    call(fn);
    const std::lock_guard lock(mutex_);
    throw_if_lost();
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    check_cuda(cudaStreamIsCapturing(stream(), &capture));
    if (capture != cudaStreamCaptureStatusNone) return;
    check_cuda(cudaEventRecord(last_work_, stream()));
    worked_ = true;
    worked_at_ = Clock::now();
  }

  /// Returns when the stream is empty.
  void wait_for_stream() {
    const Clock::time_point begin = Clock::now();
    for (;;) {
      const cudaError_t state = cudaStreamQuery(stream());
      {
        const std::lock_guard lock(mutex_);
        throw_if_lost();
      }
      if (state == cudaSuccess) return;
      if (state != cudaErrorNotReady) check_cuda(state);
      pause(begin);
    }
  }

  /// Ends the work of this rank on the group; `rank` (global) is who is to blame.
  void give_up(int rank, const std::string& why) {
    const std::lock_guard lock(mutex_);
    give_up_locked(rank, why);
  }
  void announce_and_give_up(int rank, const std::string& why) {
    if (options_.board) options_.board->post(name_, rank);
    give_up(rank, why);
  }

  /// The watchdog's look: asynchronous errors, an abort by a peer, work that stands still.
  void inspect(bool look_at_board) {
    std::optional<int> by;
    if (look_at_board && options_.board) by = options_.board->look(name_);
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr || lost_) return;
    if (by) return give_up_locked(*by, "rank " + std::to_string(*by) + " aborted the group");
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(comm_, &state);
    if (asked != ncclSuccess) state = asked;
    if (state != ncclSuccess && state != ncclInProgress) {
      return give_up_locked(-1, std::string("NCCL: ") + ncclGetErrorString(state));
    }
    if (!worked_) return;
    if (cudaEventQuery(last_work_) == cudaSuccess) {
      worked_ = false;
    } else if (seconds_since(worked_at_) > options_.timeout_s) {
      give_up_locked(-1, "no progress for " + std::to_string(options_.timeout_s) + " s");
    }
  }

  /// Before the communicator ends; a lost one took its windows with it.
  void deregister(ncclWindow_t window) {
    const std::lock_guard lock(mutex_);
    if (comm_ != nullptr) ncclCommWindowDeregister(comm_, window);
  }

  /// Where a call that makes a communicator puts it.
  ncclComm_t* slot() { return &comm_; }

  /// Polls until the last call is done; throws PeerLost where it failed.
  void settle() {
    const Clock::time_point begin = Clock::now();
    for (;;) {
      {
        const std::lock_guard lock(mutex_);
        throw_if_lost();
        ncclResult_t state = ncclSuccess;
        judge(ncclCommGetAsyncError(comm_, &state));
        if (state != ncclInProgress) return judge(state);
        if (seconds_since(begin) > options_.timeout_s) {
          give_up_locked(-1,
                         "a peer did not come within " + std::to_string(options_.timeout_s) + " s");
          throw_if_lost();
        }
      }
      pause(begin);
    }
  }

 private:
  static void pause(Clock::time_point begin) {
    if (seconds_since(begin) > 1e-3) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    } else {
      std::this_thread::yield();
    }
  }
  bool finalized() const {
    constexpr double kPatience = 5;  // seconds
    const Clock::time_point begin = Clock::now();
    ncclResult_t state = ncclCommFinalize(comm_);
    while (state == ncclInProgress && seconds_since(begin) < kPatience) {
      pause(begin);
      if (ncclCommGetAsyncError(comm_, &state) != ncclSuccess) return false;
    }
    return state == ncclSuccess;
  }
  void throw_if_lost() const {
    if (lost_) throw PeerLost(*lost_, why_);
  }
  void judge(ncclResult_t code) {
    if (code == ncclSuccess || code == ncclInProgress) return;
    if (code == ncclInvalidArgument || code == ncclInvalidUsage) {
      throw Error(ExitCode::internal, std::string("NCCL: ") + ncclGetErrorString(code) + ": " +
                                          ncclGetLastError(comm_));
    }
    give_up_locked(-1, std::string("NCCL: ") + ncclGetErrorString(code));
    throw_if_lost();
  }
  void give_up_locked(int rank, const std::string& why) {
    if (lost_) return;
    lost_ = rank;
    why_ = why;
    if (comm_ != nullptr) ncclCommAbort(comm_);  // ends its kernels, so that waiters return
    comm_ = nullptr;
  }

  const NcclOptions options_;
  const std::string name_;
  const std::vector<int> global_ranks_;
  std::mutex mutex_;
  ncclComm_t comm_ = nullptr;
  cudaEvent_t last_work_ = nullptr;
  bool worked_ = false;
  Clock::time_point worked_at_;
  std::optional<int> lost_;
  std::string why_;
};

/// Looks at the channels of one world until the last of its communicators is gone.
class Watchdog {
 public:
  explicit Watchdog(int device) : thread_([this, device] { run(device); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;

  void add(Channel* channel) {
    const std::lock_guard lock(mutex_);
    channels_.insert(channel);
  }
  void remove(Channel* channel) {
    const std::lock_guard lock(mutex_);
    channels_.erase(channel);
  }

 private:
  void run(int device) {
    cudaSetDevice(device);
    // Queries of this thread must not break a graph that another thread captures.
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaThreadExchangeStreamCaptureMode(&mode);
    std::unique_lock lock(mutex_);
    for (int turn = 0; !stop_; ++turn) {
      for (Channel* channel : channels_) channel->inspect(turn % 5 == 0);
      changed_.wait_for(lock, std::chrono::milliseconds(100), [&] { return stop_; });
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::set<Channel*> channels_;
  std::thread thread_;  // last: it uses the rest
};

class NcclCommunicator final : public Communicator, public BatchReducer {
 public:
  NcclCommunicator(std::shared_ptr<Watchdog> watchdog, std::unique_ptr<Channel> channel, int rank)
      : watchdog_(std::move(watchdog)), channel_(std::move(channel)), rank_(rank) {
    size_ = static_cast<int>(channel_->global_ranks().size());
    check_cuda(cudaMalloc(reinterpret_cast<void**>(&flag_), sizeof(*flag_)));
    check_cuda(cudaMemset(flag_, 0, sizeof(*flag_)));
    watchdog_->add(channel_.get());
  }
  ~NcclCommunicator() override {
    watchdog_->remove(channel_.get());
    if (window_ != nullptr) channel_->deregister(window_);
    channel_.reset();
    cudaFree(flag_);
  }

  const NcclOptions& options() const { return channel_->options(); }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void all_reduce(void* data, std::size_t count, DType type, ReduceOp op) override {
    channel_->work([&](ncclComm_t comm) {
      return ncclAllReduce(data, data, count, nccl_type(type), nccl_op(op), comm, stream());
    });
  }
  void all_gather(const void* send, void* receive, std::size_t count, DType type) override {
    channel_->work([&](ncclComm_t comm) {
      return ncclAllGather(send, receive, count, nccl_type(type), comm, stream());
    });
  }
  void reduce_scatter(const void* send, void* receive, std::size_t count, DType type,
                      ReduceOp op) override {
    channel_->work([&](ncclComm_t comm) {
      return ncclReduceScatter(send, receive, count, nccl_type(type), nccl_op(op), comm, stream());
    });
  }
  void all_gather_batch(std::span<const GatherBlock> blocks) override {
    grouped(blocks, [&](const GatherBlock& block, ncclComm_t comm) {
      return ncclAllGather(block.send, block.receive, block.bytes, ncclUint8, comm, stream());
    });
  }
  void reduce_scatter_batch(std::span<const ReduceBlock> blocks, DType type, ReduceOp op) override {
    grouped(blocks, [&](const ReduceBlock& block, ncclComm_t comm) {
      return ncclReduceScatter(block.send, block.receive, block.count, nccl_type(type), nccl_op(op),
                               comm, stream());
    });
  }
  void broadcast(void* data, std::size_t count, DType type, int root) override {
    channel_->work([&](ncclComm_t comm) {
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
    exchange(sends, receives);
  }

  void exchange(std::span<const SendBlock> sends, std::span<const ReceiveBlock> receives) override {
    channel_->work([&](ncclComm_t comm) { return post_messages(sends, receives, comm); });
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

  void barrier() override {
    all_reduce(flag_, 1, DType::int32, ReduceOp::max);
    channel_->wait_for_stream();
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
    const std::string name = channel_->name() + "/" + std::to_string(splits_++) + "." +
                             std::to_string(listed ? members[0] : -1);
    std::vector<int> global_ranks;
    for (const int member : members) {
      global_ranks.push_back(channel_->global_ranks()[static_cast<std::size_t>(member)]);
    }
    channel_->wait_for_stream();
    auto made = std::make_unique<Channel>(options, name, std::move(global_ranks));
    ncclConfig_t config = config_of(options);
    channel_->call([&](ncclComm_t comm) {
      return ncclCommSplit(comm, listed ? members[0] : NCCL_SPLIT_NOCOLOR, place, made->slot(),
                           &config);
    });
    if (!listed) return nullptr;
    made->settle();
    return std::make_unique<NcclCommunicator>(watchdog_, std::move(made), place);
  }

  void register_window(void* data, std::size_t bytes) {
    channel_->call([&](ncclComm_t comm) {
      return ncclCommWindowRegister(comm, data, bytes, &window_, NCCL_WIN_COLL_SYMMETRIC);
    });
  }

 private:
  cudaStream_t stream() const { return channel_->stream(); }

  /// One operation of many: NCCL runs them in one kernel.
  template <class Block, class Post>
  void grouped(std::span<const Block> blocks, Post post) {
    if (blocks.empty()) return;
    channel_->work([&](ncclComm_t comm) {
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
    for (const SendBlock& block : sends) {
      if (block.peer == rank_ || block.bytes == 0) continue;
      note(ncclSend(block.data, block.bytes, ncclUint8, block.peer, comm, stream()));
    }
    for (const ReceiveBlock& block : receives) {
      if (block.peer == rank_ || block.bytes == 0) continue;
      note(ncclRecv(block.data, block.bytes, ncclUint8, block.peer, comm, stream()));
    }
    note(ncclGroupEnd());
    return first;
  }

  std::shared_ptr<Watchdog> watchdog_;
  std::unique_ptr<Channel> channel_;
  int rank_, size_ = 1;
  int splits_ = 0;
  std::int32_t* flag_ = nullptr;
  ncclWindow_t window_ = nullptr;
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

class CudaClock final : public DeviceClock {
 public:
  explicit CudaClock(void* stream) : stream_(static_cast<cudaStream_t>(stream)) {}
  ~CudaClock() override {
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
  }
  CudaClock(const CudaClock&) = delete;

  int mark() override {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    check_cuda(cudaStreamIsCapturing(stream_, &capture));
    if (capture != cudaStreamCaptureStatusNone) return -1;
    if (used_ == events_.size()) check_cuda(cudaEventCreate(&events_.emplace_back()));
    check_cuda(cudaEventRecord(events_[used_], stream_));
    return static_cast<int>(used_++);
  }

  /// The stream is empty at the end, so the last event passed just now: times count back from it.
  std::vector<Clock::time_point> resolve() override {
    std::vector<Clock::time_point> times(used_);
    if (used_ == 0) return times;
    const int end = mark();
    cudaEvent_t last = events_[static_cast<std::size_t>(end)];
    check_cuda(cudaEventSynchronize(last));
    const Clock::time_point now = Clock::now();
    for (std::size_t i = 0; i < times.size(); ++i) {
      float milliseconds = 0;
      check_cuda(cudaEventElapsedTime(&milliseconds, events_[i], last));
      times[i] = now - std::chrono::duration_cast<Clock::duration>(
                           std::chrono::duration<double, std::milli>(milliseconds));
    }
    used_ = 0;
    return times;
  }

 private:
  cudaStream_t stream_;
  std::vector<cudaEvent_t> events_;
  std::size_t used_ = 0;
};

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
  auto channel = std::make_unique<Channel>(options, "world", std::move(ranks));
  ncclUniqueId unique;
  std::memcpy(unique.internal, id.data(), id.size());
  ncclConfig_t config = config_of(options);
  channel->call([&](ncclComm_t) {
    return ncclCommInitRankConfig(channel->slot(), size, unique, rank, &config);
  });
  auto watchdog = std::make_shared<Watchdog>(options.device);
  return std::make_unique<NcclCommunicator>(std::move(watchdog), std::move(channel), rank);
}

std::unique_ptr<Communicator> split_with_window(Communicator& world, std::span<const int> members,
                                                CtaPolicy policy, void* window, std::size_t bytes) {
  auto& nccl = dynamic_cast<NcclCommunicator&>(world);
  NcclOptions options = nccl.options();
  options.cta_policy = policy;
  std::unique_ptr<NcclCommunicator> group = nccl.split_with(members, options);
  if (group != nullptr) group->register_window(window, bytes);
  return group;
}

std::unique_ptr<Communicator> split_on_stream(Communicator& world, std::span<const int> members,
                                              void* stream) {
  auto& nccl = dynamic_cast<NcclCommunicator&>(world);
  NcclOptions options = nccl.options();
  options.stream = stream;
  return nccl.split_with(members, options);
}

std::unique_ptr<DeviceClock> make_cuda_clock(void* stream) {
  return std::make_unique<CudaClock>(stream);
}

int cuda_device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

}  // namespace tessera
