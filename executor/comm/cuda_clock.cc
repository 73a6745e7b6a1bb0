#include <cuda_runtime_api.h>

#include <chrono>
#include <memory>
#include <vector>

#include "executor/comm/nccl_channel.h"
#include "executor/comm/nccl_world.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

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

std::unique_ptr<DeviceClock> make_cuda_clock(void* stream) {
  return std::make_unique<CudaClock>(stream);
}

}  // namespace tessera
