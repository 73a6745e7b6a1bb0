// One GPU as NVIDIA's management library (NVML) sees it: what nvidia-smi prints of it.
//
// The library comes with the driver and is opened at run time, so that neither a build nor a host
// without GPUs needs it. Its functions and structures are those of the NVML API reference (nvml.h).
// Any thread, one at a time.
#pragma once

#include <map>
#include <memory>
#include <string>

namespace tessera {

inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

/// What a GPU does, by the last part of a metric's name. Whatever it or its driver does not tell is
/// not there.
/// utilization_percentage: of the last 1/6 to 1 s, the part in which some kernel ran.
/// memory_usage_megabytes: in use on the whole GPU, in 10^6 bytes.
/// power_usage_watts, temperature_celsius, sm_clock_mhz.
using DeviceLoad = std::map<std::string, double>;

class NvmlDevice {
 public:
  /// `library`: a name for dlopen, or a path. `pci_bus_id` says which GPU, as CUDA does
  /// ("0000:65:00.0"): NVML numbers GPUs otherwise and does not know CUDA_VISIBLE_DEVICES. Throws
  /// Error (missing) with NVML's reason where there is no library or no such GPU.
  NvmlDevice(const std::string& library, const std::string& pci_bus_id);
  ~NvmlDevice();

  /// As of now; takes milliseconds.
  DeviceLoad load() const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
  void* device_ = nullptr;  // nvmlDevice_t
};

}  // namespace tessera
