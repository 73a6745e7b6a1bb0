#include "executor/comm/nccl_channel.h"

#include <exception>
#include <utility>

#include "cost_models/documents/out_of_memory.h"
#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

void pause(const Stopwatch& waiting) {
  if (waiting.seconds() > 1e-3) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  } else {
    std::this_thread::yield();
  }
}

}  // namespace

void check_cuda(cudaError_t code) {
  if (code == cudaSuccess) return;
  throw Error(ExitCode::internal, std::string("CUDA: ") + cudaGetErrorString(code));
}

NcclChannel::NcclChannel(const NcclOptions& options, std::string name,
                         std::vector<int> global_ranks)
    : options_(options), name_(std::move(name)), global_ranks_(std::move(global_ranks)) {
  check_cuda(cudaEventCreateWithFlags(&last_work_, cudaEventDisableTiming));
}

NcclChannel::~NcclChannel() {
  if (comm_ != nullptr) {
    const bool ended = std::uncaught_exceptions() == 0 && finalized();
    ended ? ncclCommDestroy(comm_) : ncclCommAbort(comm_);
  }
  cudaEventDestroy(last_work_);
}

void NcclChannel::note_work(std::int64_t number) {
  const std::lock_guard lock(mutex_);
  throw_if_lost();
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(stream(), &capture));
  if (capture != cudaStreamCaptureStatusNone) {
    if (recorder() != nullptr) recorder()->captured(number);
    return;
  }
  check_cuda(cudaEventRecord(last_work_, stream()));
  if (recorder() != nullptr) noted_ = recorder()->begun(recorded_);
  worked_ = true;
  since_work_ = Stopwatch();
}

void NcclChannel::wait_for_stream() {
  const Stopwatch watch;
  for (;;) {
    const cudaError_t state = cudaStreamQuery(stream());
    {
      const std::lock_guard lock(mutex_);
      throw_if_lost();
    }
    if (state == cudaSuccess) return;
    if (state != cudaErrorNotReady) check_cuda(state);
    pause(watch);
  }
}

void NcclChannel::give_up(int rank, const std::string& why) {
  const std::lock_guard lock(mutex_);
  give_up_locked(rank, why);
}

void NcclChannel::announce_and_give_up(int rank, const std::string& why) {
  if (options_.board) options_.board->post(name_, rank);
  give_up(rank, why);
}

void NcclChannel::inspect(bool look_at_board) {
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
    if (recorder() != nullptr) recorder()->end_until(recorded_, noted_);
  } else if (since_work_.seconds() > options_.timeout_s) {
    give_up_locked(-1, "no progress for " + std::to_string(options_.timeout_s) + " s");
  }
}

void NcclChannel::deregister(ncclWindow_t window) {
  const std::lock_guard lock(mutex_);
  if (comm_ != nullptr) ncclCommWindowDeregister(comm_, window);
}

void NcclChannel::deregister(void* registration) {
  const std::lock_guard lock(mutex_);
  if (comm_ != nullptr && registration != nullptr) ncclCommDeregister(comm_, registration);
}

void NcclChannel::settle() {
  const Stopwatch watch;
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      throw_if_lost();
      ncclResult_t state = ncclSuccess;
      judge(ncclCommGetAsyncError(comm_, &state));
      if (state != ncclInProgress) return judge(state);
      if (watch.seconds() > options_.timeout_s) {
        give_up_locked(-1,
                       "a peer did not come within " + std::to_string(options_.timeout_s) + " s");
        throw_if_lost();
      }
    }
    pause(watch);
  }
}

bool NcclChannel::finalized() const {
  constexpr double kPatience = 5;  // seconds
  const Stopwatch watch;
  ncclResult_t state = ncclCommFinalize(comm_);
  while (state == ncclInProgress && watch.seconds() < kPatience) {
    pause(watch);
    if (ncclCommGetAsyncError(comm_, &state) != ncclSuccess) return false;
  }
  return state == ncclSuccess;
}

void NcclChannel::throw_if_lost() const {
  if (lost_) throw PeerLost(*lost_, why_);
}

void NcclChannel::judge(ncclResult_t code) {
  if (code == ncclSuccess || code == ncclInProgress) return;
  if (code == ncclInvalidArgument || code == ncclInvalidUsage) {
    throw Error(ExitCode::internal,
                std::string("NCCL: ") + ncclGetErrorString(code) + ": " + ncclGetLastError(comm_));
  }
  const std::string last = comm_ != nullptr ? ncclGetLastError(comm_) : "";
  give_up_locked(-1, std::string("NCCL: ") + ncclGetErrorString(code));
  if (last.find("out of memory") != std::string::npos)
    throw OutOfMemory("NCCL", 0, "NCCL: " + last);
  throw_if_lost();
}

void NcclChannel::give_up_locked(int rank, const std::string& why) {
  if (lost_) return;
  lost_ = rank;
  why_ = why;
  if (comm_ != nullptr) ncclCommAbort(comm_);  // ends its kernels, so that waiters return
  comm_ = nullptr;
}

NcclWatchdog::~NcclWatchdog() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void NcclWatchdog::add(NcclChannel* channel) {
  const std::lock_guard lock(mutex_);
  channels_.insert(channel);
}

void NcclWatchdog::remove(NcclChannel* channel) {
  const std::lock_guard lock(mutex_);
  channels_.erase(channel);
}

void NcclWatchdog::run(int device) {
  cudaSetDevice(device);
  // Queries of this thread must not break a graph that another thread captures.
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
  std::unique_lock lock(mutex_);
  for (int turn = 0; !stop_; ++turn) {
    for (NcclChannel* channel : channels_) channel->inspect(turn % 5 == 0);
    changed_.wait_for(lock, std::chrono::milliseconds(100), [&] { return stop_; });
  }
}

}  // namespace tessera
