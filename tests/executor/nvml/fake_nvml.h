// What a test says to the library that stands for NVIDIA's, and what it hears from it.
#pragma once

#include <atomic>
#include <string>

/// The library's state; `fake_nvml_state` returns the one of the library that is loaded.
struct FakeNvml {
  std::atomic<int> fails_to_start = 0;  // what nvmlInit_v2 returns
  std::atomic<int> no_power = 0, lost = 0;
  std::atomic<bool> counts = false;  // utilisation is the number of the look: 1, 2, 3, ...
  std::atomic<int> started = 0, ended = 0;
  std::atomic<int> looks = 0;  // at the utilisation, since the state was new
};

using FakeNvmlState = FakeNvml*();
