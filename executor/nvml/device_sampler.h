// What a rank's GPU does while a run goes on: looked at once a second, averaged for the metrics.
//
// A thread of its own looks (NvmlDevice); whoever owns the sampler takes the means. All calls from
// one thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "executor/nvml/nvml_device.h"

namespace tessera {

struct SampledDevice {
  int rank = 0;            // in the metrics' names
  std::string pci_bus_id;  // of its GPU
  std::string library = kNvmlLibrary;
  std::chrono::milliseconds period{1000};
};

class DeviceSampler {
 public:
  /// Looks at once, and then every period, until it is destroyed.
  explicit DeviceSampler(SampledDevice device);
  ~DeviceSampler();
  DeviceSampler(const DeviceSampler&) = delete;

  /// system/gpu_RANK_utilization_percentage and the other parts of a DeviceLoad, the first three as
  /// MLflow names them: means of the looks since the last call, or where none fell into that time
  /// (a step shorter than a period) the newest one. Empty where nothing is known of the GPU.
  std::map<std::string, double> take();

  /// Why nothing is known of the GPU: told once, then and otherwise empty.
  std::string trouble();

 private:
  void sample(const std::stop_token& stop);
  void add(const DeviceLoad& load);

  struct Sum {
    double total = 0;
    int looks = 0;
  };
  const SampledDevice device_;
  std::mutex mutex_;                 // of what follows
  std::map<std::string, Sum> sums_;  // since the last take
  DeviceLoad newest_;
  std::string trouble_;
  std::condition_variable_any ended_;
  std::jthread thread_;  // last: ends before what it writes to
};

}  // namespace tessera
