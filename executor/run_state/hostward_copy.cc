#include "executor/run_state/hostward_copy.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "executor/threads/shared_work.h"

namespace tessera {
namespace {

constexpr std::int64_t kChunk = std::int64_t{1} << 20;  // elements that a thread copies at once
constexpr int kMostThreads = 8;

/// By several threads, as many as this process has cores where others do the same for the host's
/// other GPUs.
void copy_within_host(float* to, const float* from, std::int64_t count) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const int gpus = std::max(1, static_cast<int>(torch::cuda::device_count()));
  share_work(count, kChunk, std::clamp(cores / gpus, 1, kMostThreads),
             [&](std::int64_t begin, std::int64_t end) {
               std::memcpy(to + begin, from + begin,
                           static_cast<std::size_t>(end - begin) * sizeof(float));
             });
}

}  // namespace

HostwardCopy::HostwardCopy(float* to, torch::Device device, std::int64_t window)
    : to_(to),
      device_(device),
      window_(window),
      buffers_{Buffer{.pinned = {}, .done = c10::Event(device.type())},
               Buffer{.pinned = {}, .done = c10::Event(device.type())}} {
  if (!device.is_cuda()) return;
  for (Buffer& buffer : buffers_) {
    buffer.pinned =
        torch::empty({window}, torch::TensorOptions().dtype(torch::kFloat32).pinned_memory(true));
  }
}

void HostwardCopy::append(const torch::Tensor& from) {
  const torch::NoGradGuard no_grad;
  const std::int64_t count = from.numel();
  if (!device_.is_cuda()) {
    copy_within_host(to_ + next_, from.const_data_ptr<float>(), count);
    next_ += count;
    return;
  }
  for (std::int64_t at = 0; at < count;) {
    Buffer& buffer = buffers_[static_cast<std::size_t>(filled_)];
    const std::int64_t part = std::min(count - at, window_ - buffer.count);
    buffer.pinned.narrow(0, buffer.count, part)
        .copy_(from.narrow(0, at, part), /*non_blocking=*/true);
    buffer.count += part;
    next_ += part;
    at += part;
    if (buffer.count == window_) turn();
  }
}

/// The device goes on filling one buffer while the other is emptied.
void HostwardCopy::turn() {
  Buffer& full = buffers_[static_cast<std::size_t>(filled_)];
  full.done.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  filled_ = 1 - filled_;
  Buffer& other = buffers_[static_cast<std::size_t>(filled_)];
  empty(other);
  other.first = next_;
}

void HostwardCopy::empty(Buffer& buffer) {
  if (buffer.count == 0) return;
  buffer.done.synchronize();
  copy_within_host(to_ + buffer.first, buffer.pinned.const_data_ptr<float>(), buffer.count);
  buffer.count = 0;
}

void HostwardCopy::finish() {
  if (!device_.is_cuda()) return;
  turn();
  turn();
}

}  // namespace tessera
