// Stands for libnvidia-ml.so.1 in tests: two GPUs with known figures, behind NVIDIA's declarations.
#include "tests/executor/nvml/fake_nvml.h"

#include <nvml.h>

#include <cstdio>

namespace {

FakeNvml state;

/// NVML numbers GPUs by their place on the bus.
struct Gpu {
  unsigned int bus, percent, milliwatts, celsius, sm_mhz;
  unsigned long long used;
};
Gpu gpus[] = {{0x1b, 13, 71'250, 31, 345, 512'000'000ULL},
              {0xc3, 97, 688'400, 64, 1'980, 61'234'567'890ULL}};

/// Of a handle that this library has given out, while it is initialised.
const Gpu* gpu_of(nvmlDevice_t device) {
  if (state.started <= state.ended) return nullptr;
  for (const Gpu& gpu : gpus) {
    if (reinterpret_cast<const Gpu*>(device) == &gpu) return &gpu;
  }
  return nullptr;
}

/// Writes what `value` is for the GPU.
template <class Value, class Of>
nvmlReturn_t tell(nvmlDevice_t device, Value* into, Of of) {
  const Gpu* gpu = gpu_of(device);
  if (gpu == nullptr || into == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (state.lost) return NVML_ERROR_GPU_IS_LOST;
  *into = of(*gpu);
  return NVML_SUCCESS;
}

}  // namespace

extern "C" {

FakeNvml* fake_nvml_state() { return &state; }

nvmlReturn_t nvmlInit_v2() {
  if (state.fails_to_start) return static_cast<nvmlReturn_t>(state.fails_to_start.load());
  ++state.started;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlShutdown() {
  ++state.ended;
  return NVML_SUCCESS;
}

const char* nvmlErrorString(nvmlReturn_t result) {
  return result == NVML_ERROR_DRIVER_NOT_LOADED ? "Driver Not Loaded" : "Not Found";
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* pci_bus_id, nvmlDevice_t* device) {
  unsigned int domain = 1, bus = 0, slot = 1, function = 1;
  if (std::sscanf(pci_bus_id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4) {
    return NVML_ERROR_INVALID_ARGUMENT;
  }
  for (Gpu& gpu : gpus) {
    if (gpu.bus != bus || domain != 0 || slot != 0 || function != 0) continue;
    *device = reinterpret_cast<nvmlDevice_t>(&gpu);
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* utilization) {
  const auto look = static_cast<unsigned int>(++state.looks);
  return tell(device, utilization, [&](const Gpu& gpu) {
    return nvmlUtilization_t{.gpu = state.counts ? look : gpu.percent, .memory = 1000};
  });
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  return tell(device, memory, [](const Gpu& gpu) {
    constexpr unsigned long long kTotal = 85'000'000'000ULL;
    return nvmlMemory_t{.total = kTotal, .free = kTotal - gpu.used, .used = gpu.used};
  });
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int* power) {
  if (state.no_power) return NVML_ERROR_NOT_SUPPORTED;
  return tell(device, power, [](const Gpu& gpu) { return gpu.milliwatts; });
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor,
                                      unsigned int* temperature) {
  if (sensor != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
  return tell(device, temperature, [](const Gpu& gpu) { return gpu.celsius; });
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type,
                                    unsigned int* clock) {
  return tell(device, clock,
              [&](const Gpu& gpu) { return type == NVML_CLOCK_SM ? gpu.sm_mhz : 9'999'999; });
}

}  // extern "C"
