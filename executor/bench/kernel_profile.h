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

/// Times in which no computation ran (collectives beside it do not count), between two kernels.
struct IdleTime {
  std::string after, before;
  int times = 0;
  double seconds = 0;
};

struct KernelProfile {
  std::vector<KernelTime> kernels;  // longest first
  std::vector<IdleTime> idle;       // longest first; empty on a CPU
  double span_s = 0;                // first start to last end
  double idle_s = 0;
};

/// Runs `work` and returns its kernels (on a CPU: torch's operators). The caller synchronises at
/// the end of `work`.
KernelProfile profile_kernels(const std::function<void()>& work, bool device);

/// The kind that a kernel's name tells.
std::string kernel_kind(const std::string& name);

}  // namespace tessera
