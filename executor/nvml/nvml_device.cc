#include "executor/nvml/nvml_device.h"

#include <dlfcn.h>

#include <utility>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

// NVML API reference, "Enums", "Structs" and "Device Queries" (nvml.h of CUDA 13).
using Return = int;                   // nvmlReturn_t, an enum
using Device = void*;                 // nvmlDevice_t, a pointer to what NVML alone knows
constexpr Return kSuccess = 0;        // NVML_SUCCESS
constexpr int kTemperatureOfGpu = 0;  // NVML_TEMPERATURE_GPU
constexpr int kSmClock = 1;           // NVML_CLOCK_SM

/// The library's function of this name; nullptr where it is older than the function.
template <class Function>
void find(void* module, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(module, name));
}

}  // namespace

/// The opened and initialised library.
struct NvmlDevice::Library {
  struct Utilization {  // nvmlUtilization_t, percent
    unsigned int gpu, memory;
  };
  struct Memory {  // nvmlMemory_t, bytes
    unsigned long long total, free, used;
  };

  explicit Library(const std::string& name)
      : module(::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (module == nullptr) throw Error(ExitCode::missing, ::dlerror());
    find(module, "nvmlInit_v2", init);
    find(module, "nvmlShutdown", shutdown);
    find(module, "nvmlErrorString", error_string);
    find(module, "nvmlDeviceGetHandleByPciBusId_v2", by_pci_bus_id);
    find(module, "nvmlDeviceGetUtilizationRates", utilization);
    find(module, "nvmlDeviceGetMemoryInfo", memory);
    find(module, "nvmlDeviceGetPowerUsage", power);
    find(module, "nvmlDeviceGetTemperature", temperature);
    find(module, "nvmlDeviceGetClockInfo", clock);
    if (init == nullptr || shutdown == nullptr || by_pci_bus_id == nullptr) {
      ::dlclose(module);
      throw Error(ExitCode::missing, name + ": not NVML, or older than its version 5");
    }
    if (const Return failed = init(); failed != kSuccess) {
      const std::string why = name + ": " + words_of(failed);
      ::dlclose(module);
      throw Error(ExitCode::missing, why);
    }
  }
  ~Library() {
    shutdown();
    ::dlclose(module);
  }
  Library(const Library&) = delete;

  std::string words_of(Return failed) const {
    return error_string == nullptr ? "error " + std::to_string(failed) : error_string(failed);
  }

  void* module;
  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  const char* (*error_string)(Return) = nullptr;
  Return (*by_pci_bus_id)(const char*, Device*) = nullptr;
  Return (*utilization)(Device, Utilization*) = nullptr;
  Return (*memory)(Device, Memory*) = nullptr;
  Return (*power)(Device, unsigned int*) = nullptr;  // milliwatts
  Return (*temperature)(Device, int, unsigned int*) = nullptr;
  Return (*clock)(Device, int, unsigned int*) = nullptr;  // MHz
};

NvmlDevice::NvmlDevice(const std::string& library, const std::string& pci_bus_id)
    : library_(std::make_unique<Library>(library)) {
  const Return failed = library_->by_pci_bus_id(pci_bus_id.c_str(), &device_);
  if (failed == kSuccess) return;
  throw Error(ExitCode::missing,
              library + ": GPU " + pci_bus_id + ": " + library_->words_of(failed));
}

NvmlDevice::~NvmlDevice() = default;

DeviceLoad NvmlDevice::load() const {
  DeviceLoad load;
  const auto told = [&](auto* function, auto... arguments) {
    return function != nullptr && function(device_, arguments...) == kSuccess;
  };
  Library::Utilization utilization{};
  if (told(library_->utilization, &utilization)) load["utilization_percentage"] = utilization.gpu;
  Library::Memory memory{};
  if (told(library_->memory, &memory)) {
    load["memory_usage_megabytes"] = static_cast<double>(memory.used) * 1e-6;
  }
  unsigned int value = 0;
  if (told(library_->power, &value)) load["power_usage_watts"] = value * 1e-3;
  if (told(library_->temperature, kTemperatureOfGpu, &value)) load["temperature_celsius"] = value;
  if (told(library_->clock, kSmClock, &value)) load["sm_clock_mhz"] = value;
  return load;
}

}  // namespace tessera
