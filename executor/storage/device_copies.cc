// Copies between GPUs of one host by their copy engines.
#include <mutex>
#include <utility>
#include <vector>

#include "executor/storage/block_copies.h"
#include "executor/storage/cuda_calls.h"

namespace tessera {
namespace {

/// Peers' streams are started in the order given, so that not all ranks begin with the same peer.
class DeviceCopies final : public BlockCopies {
 public:
  DeviceCopies(int device, void* producer, CopyWithin within)
      : device_(device),
        producer_(static_cast<cudaStream_t>(producer)),
        within_(std::move(within)) {
    check(cudaSetDevice(device), "cudaSetDevice");
  }
  ~DeviceCopies() override {
    for (cudaStream_t stream : streams_) {
      if (stream != nullptr) cudaStreamDestroy(stream);
    }
    for (cudaStream_t stream : {steps_, here_}) {
      if (stream != nullptr) cudaStreamDestroy(stream);
    }
    for (cudaEvent_t event : marks_) cudaEventDestroy(event);
  }
  DeviceCopies(const DeviceCopies&) = delete;

  void await_producer() override { check(cudaStreamSynchronize(producer_), "producer stream"); }

  int mark_producer() override {
    const std::lock_guard lock(mutex_);
    if (free_marks_.empty()) {
      free_marks_.push_back(static_cast<int>(marks_.size()));
      check(cudaEventCreateWithFlags(&marks_.emplace_back(), cudaEventDisableTiming), "event");
    }
    const int mark = free_marks_.back();
    free_marks_.pop_back();
    check(cudaEventRecord(marks_[static_cast<std::size_t>(mark)], producer_), "event");
    return mark;
  }

  void await_mark(int mark) override {
    cudaEvent_t event = nullptr;
    {
      const std::lock_guard lock(mutex_);
      event = marks_[static_cast<std::size_t>(mark)];
    }
    check(cudaSetDevice(device_), "cudaSetDevice");  // the calling thread may be a new one
    check(cudaEventSynchronize(event), "producer stream");
    const std::lock_guard lock(mutex_);
    free_marks_.push_back(mark);
  }

  void start(std::span<const CopyBatch> batches) override {
    check(cudaSetDevice(device_), "cudaSetDevice");  // the calling thread may be a new one
    for (const CopyBatch& batch : batches) {
      if (batch.to.empty()) continue;
      batch.peer < 0 ? copy_here(batch) : copy_on_stream(batch, stream_of(batch.peer));
    }
  }

  /// On one stream, which waits for the others' by itself: the host only gives the work.
  void start_in_steps(std::span<const CopyBatch> steps, StreamBarrier& barrier) override {
    check(cudaSetDevice(device_), "cudaSetDevice");
    if (steps_ == nullptr) {
      int least = 0, greatest = 0;
      check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "stream priorities");
      check(cudaStreamCreateWithPriority(&steps_, cudaStreamNonBlocking, greatest), "stream");
    }
    for (const CopyBatch& step : steps) {
      if (!step.to.empty()) copy_on_stream(step, steps_);
      barrier.meet(steps_);
    }
  }

  void wait() override {
    for (cudaStream_t stream : streams_) {
      if (stream != nullptr) check(cudaStreamSynchronize(stream), "copies from peers");
    }
    for (cudaStream_t stream : {steps_, here_}) {
      if (stream != nullptr) check(cudaStreamSynchronize(stream), "copies");
    }
  }

 private:
  /// Within the device multiprocessors copy several times as fast as copy engines, which may be
  /// busy with peers, too.
  void copy_here(const CopyBatch& batch) {
    if (here_ == nullptr) {
      check(cudaStreamCreateWithFlags(&here_, cudaStreamNonBlocking), "stream");
    }
    if (within_) return within_(batch, here_);
    for (std::size_t i = 0; i < batch.to.size(); ++i) {
      check(cudaMemcpyAsync(batch.to[i], batch.from[i], batch.bytes[i], cudaMemcpyDeviceToDevice,
                            here_),
            "copies within the device");
    }
  }

  cudaStream_t stream_of(int peer) {
    const auto index = static_cast<std::size_t>(peer);
    if (streams_.size() <= index) streams_.resize(index + 1, nullptr);
    if (streams_[index] == nullptr) {
      check(cudaStreamCreateWithFlags(&streams_[index], cudaStreamNonBlocking), "stream");
    }
    return streams_[index];
  }

  int device_;
  cudaStream_t producer_;
  CopyWithin within_;
  std::vector<cudaStream_t> streams_;              // by peer
  cudaStream_t steps_ = nullptr, here_ = nullptr;  // of start_in_steps, and within the device
  std::mutex mutex_;                               // of the marks
  std::vector<cudaEvent_t> marks_;
  std::vector<int> free_marks_;
};

}  // namespace

void copy_on_stream(const CopyBatch& batch, void* stream) {
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  std::size_t first = 0;
  // The driver reads the arrays only; its signature lacks the const.
  check(cudaMemcpyBatchAsync(const_cast<void**>(batch.to.data()),
                             const_cast<void**>(batch.from.data()),
                             const_cast<std::size_t*>(batch.bytes.data()), batch.to.size(),
                             &attributes, &first, 1, static_cast<cudaStream_t>(stream)),
        "cudaMemcpyBatchAsync");
}

std::unique_ptr<BlockCopies> make_device_copies(int device, void* producer, CopyWithin within) {
  return std::make_unique<DeviceCopies>(device, producer, std::move(within));
}

}  // namespace tessera
