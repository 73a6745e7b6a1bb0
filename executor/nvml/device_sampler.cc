#include "executor/nvml/device_sampler.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "cost_models/documents/problem.h"

namespace tessera {

DeviceSampler::DeviceSampler(SampledDevice device)
    : device_(std::move(device)), thread_([this](const std::stop_token& stop) { sample(stop); }) {}

DeviceSampler::~DeviceSampler() = default;

/// Signals are for the threads that the process has beside this one.
void DeviceSampler::sample(const std::stop_token& stop) {
  using Clock = std::chrono::steady_clock;
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  try {
    const NvmlDevice device(device_.library, device_.pci_bus_id);
    for (Clock::time_point next = Clock::now(); !stop.stop_requested();) {
      const DeviceLoad load = device.load();
      std::unique_lock lock(mutex_);
      add(load);
      next = std::max(next + device_.period, Clock::now());  // no look is caught up on
      ended_.wait_until(lock, stop, next, [] { return false; });
    }
  } catch (const Error& error) {
    const std::lock_guard lock(mutex_);
    trouble_ = error.what();
  }
}

void DeviceSampler::add(const DeviceLoad& load) {
  for (const auto& [name, value] : load) {
    Sum& sum = sums_[name];
    sum.total += value;
    ++sum.looks;
  }
  newest_ = load;
}

std::map<std::string, double> DeviceSampler::take() {
  const std::lock_guard lock(mutex_);
  const std::string prefix = "system/gpu_" + std::to_string(device_.rank) + "_";
  std::map<std::string, double> means;
  for (const auto& [name, value] : newest_) means[prefix + name] = value;
  for (const auto& [name, sum] : std::exchange(sums_, {})) {
    means[prefix + name] = sum.total / sum.looks;
  }
  return means;
}

std::string DeviceSampler::trouble() {
  const std::lock_guard lock(mutex_);
  return std::exchange(trouble_, {});
}

}  // namespace tessera
