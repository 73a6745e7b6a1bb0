// Timing of kernels on one device. Not collective.
#pragma once

#include "executor/tensor/torch.h"

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

namespace tessera {

/// Waits for the device; returns at once on the CPU.
void synchronize(torch::Device device);

/// Median seconds of one launch of `body` over `rounds`, after two warm-ups. On a GPU five launches
/// go out together, so that launching is hidden.
double seconds_per_launch(torch::Device device, int rounds, const std::function<void()>& body);

/// Points of a rank's computation: by events on a GPU's current stream, by the clock elsewhere.
class Laps {
 public:
  explicit Laps(torch::Device device) : device_(device) {}

  void mark();
  /// Between the marks i and i + 1, i = first, first + stride, ...; summed. Precondition: the
  /// device is idle.
  double seconds(std::size_t first, std::size_t stride) const;

 private:
  torch::Device device_;
  std::vector<std::chrono::steady_clock::time_point> times_;
  std::vector<std::unique_ptr<c10::Event>> events_;
};

}  // namespace tessera
