// Copies between GPUs of one host by their copy engines.
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "executor/storage/block_copies.h"
#include "executor/storage/cuda_calls.h"
#include "executor/storage/pitched_copies.h"

namespace tessera {
namespace {

std::size_t bytes_of(const CopyBatch& batch) {
  return std::accumulate(batch.bytes.begin(), batch.bytes.end(), std::size_t{0});
}

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
      batch.peer < 0 ? copy_here(batch) : copy_from_peer(batch, stream_of(batch.peer));
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
      if (!step.to.empty()) copy_from_peer(step, steps_);
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
    from_peers_ = 0;
  }

 private:
  void copy_from_peer(const CopyBatch& batch, cudaStream_t stream) {
    from_peers_ += bytes_of(batch);
    copy_on_stream(batch, stream);
  }

  /// Within the device multiprocessors copy several times as fast as copy engines, which may be
  /// busy with peers, too. A few of them copy twice as fast as links do.
  void copy_here(const CopyBatch& batch) {
    if (here_ == nullptr) {
      check(cudaStreamCreateWithFlags(&here_, cudaStreamNonBlocking), "stream");
    }
    if (within_) return within_(batch, bytes_of(batch) <= 2 * from_peers_, here_);
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
  std::size_t from_peers_ = 0;                     // bytes begun since the last wait
  std::mutex mutex_;                               // of the marks
  std::vector<cudaEvent_t> marks_;
  std::vector<int> free_marks_;
};

}  // namespace

void copy_on_stream(const CopyBatch& batch, void* stream) {
  auto* const on = static_cast<cudaStream_t>(stream);
  CopyBatch single{.peer = batch.peer};
  for (const PitchedCopy& copy : pitched_copies(batch)) {
    if (copy.rows == 1) {
      single.add(copy.to, copy.from, copy.bytes);
      continue;
    }
    check(cudaMemcpy2DAsync(copy.to, copy.to_pitch, copy.from, copy.from_pitch, copy.bytes,
                            copy.rows, cudaMemcpyDeviceToDevice, on),
          "cudaMemcpy2DAsync");
  }
  if (single.to.empty()) return;
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  std::size_t first = 0;
  check(cudaMemcpyBatchAsync(single.to.data(), single.from.data(), single.bytes.data(),
                             single.to.size(), &attributes, &first, 1, on),
        "cudaMemcpyBatchAsync");
}

std::unique_ptr<BlockCopies> make_device_copies(int device, void* producer, CopyWithin within) {
  return std::make_unique<DeviceCopies>(device, producer, std::move(within));
}

}  // namespace tessera
