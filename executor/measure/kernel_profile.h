// Where the device's time goes, by kernel: torch's own tracer (kineto) around a piece of work.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tessera {

/// All launches of one kernel; `kind` says what it is for: gemm, attention, collective, optimizer,
/// norm, elementwise, copy or other.
struct KernelTime {
  std::string kind, name;
  int launches = 0;
  double seconds = 0;
};

/// Runs `work` and returns its kernels (on a CPU: torch's operators), longest first. The caller
/// synchronises at the end of `work`.
std::vector<KernelTime> profile_kernels(const std::function<void()>& work, bool device);

/// The kind that a kernel's name tells.
std::string kernel_kind(const std::string& name);

}  // namespace tessera
