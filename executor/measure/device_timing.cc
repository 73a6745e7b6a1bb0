#include "executor/measure/device_timing.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

#include "executor/comm/stopwatch.h"

namespace tessera {

void synchronize(torch::Device device) {
  if (device.is_cuda()) torch::cuda::synchronize(device.index());
}

double seconds_per_launch(torch::Device device, int rounds, const std::function<void()>& body) {
  const int launches = device.is_cuda() ? 5 : 1;
  std::vector<double> seconds;
  for (int round = -2; round < rounds; ++round) {
    synchronize(device);
    const Stopwatch watch;
    for (int i = 0; i < launches; ++i) body();
    synchronize(device);
    if (round >= 0) seconds.push_back(watch.seconds() / launches);
  }
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

void Laps::mark() {
  if (!device_.is_cuda()) return times_.push_back(std::chrono::steady_clock::now());
  const c10::impl::VirtualGuardImpl guard(device_.type());
  auto event = std::make_unique<c10::Event>(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
  event->record(guard.getStream(device_));
  events_.push_back(std::move(event));
}

double Laps::seconds(std::size_t first, std::size_t stride) const {
  double sum = 0;
  const std::size_t count = std::max(times_.size(), events_.size());
  for (std::size_t i = first; i + 1 < count; i += stride) {
    sum += device_.is_cuda() ? events_[i]->elapsedTime(*events_[i + 1]) * 1e-3
                             : std::chrono::duration<double>(times_[i + 1] - times_[i]).count();
  }
  return sum;
}

}  // namespace tessera
