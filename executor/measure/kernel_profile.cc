#include "executor/measure/kernel_profile.h"

#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>

namespace tessera {
namespace {

namespace profiler = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;
using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::ProfilerState;

struct Pattern {
  const char* part;
  const char* kind;
};
/// First hit wins; parts of lower-case names.
constexpr std::array<Pattern, 26> kPatterns{{
    {"nccl", "collective"},
    {"sdpa", "attention"},
    {"flash", "attention"},
    {"fmha", "attention"},
    {"cudnn_generated", "attention"},
    {"nvjet", "gemm"},
    {"gemm", "gemm"},
    {"cutlass", "gemm"},
    {"cublas", "gemm"},
    {"splitk", "gemm"},
    {"aten::mm", "gemm"},
    {"aten::addmm", "gemm"},
    {"adam", "optimizer"},
    {"squares", "optimizer"},
    {"norm", "norm"},
    {"vocabulary", "head"},
    {"memcpy", "copy"},
    {"memset", "copy"},
    {"copy", "copy"},
    {"cat", "copy"},
    {"rotate", "elementwise"},
    {"swiglu", "elementwise"},
    {"elementwise", "elementwise"},
    {"reduce", "elementwise"},
    {"index", "embedding"},
    {"embedding", "embedding"},
}};

}  // namespace

std::string kernel_kind(const std::string& name) {
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const auto& [part, kind] : kPatterns) {
    if (lower.find(part) != std::string::npos) return kind;
  }
  return "other";
}

std::vector<KernelTime> profile_kernels(const std::function<void()>& work, bool device) {
  const ProfilerConfig config(ProfilerState::KINETO);
  const std::set<ActivityType> activities{device ? ActivityType::CUDA : ActivityType::CPU};
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities);
  work();
  const auto result = profiler::disableProfiler();
  std::map<std::string, KernelTime> by_name;
  for (const auto& event : result->events()) {
    if (device && event.deviceType() != c10::DeviceType::CUDA) continue;
    KernelTime& time = by_name[event.name()];
    ++time.launches;
    time.seconds += static_cast<double>(event.durationNs()) * 1e-9;
  }
  std::vector<KernelTime> times;
  for (auto& [name, time] : by_name) {
    time.name = name;
    time.kind = kernel_kind(name);
    times.push_back(std::move(time));
  }
  std::sort(times.begin(), times.end(),
            [](const KernelTime& a, const KernelTime& b) { return a.seconds > b.seconds; });
  return times;
}

}  // namespace tessera
