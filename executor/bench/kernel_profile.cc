#include "executor/bench/kernel_profile.h"

#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "cost_models/documents/printed.h"

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
constexpr std::array<Pattern, 27> kPatterns{{
    {"nccl", "collective"},
    {"sum_over_peers", "collective"},
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

struct Launch {
  std::uint64_t begin_ns, end_ns;
  std::string name;
};

template <class Times>
void sort_by_seconds(Times& times) {
  std::sort(times.begin(), times.end(),
            [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
}

void add_idle_times(std::vector<Launch> launches, KernelProfile& profile) {
  if (launches.empty()) return;
  std::sort(launches.begin(), launches.end(),
            [](const Launch& a, const Launch& b) { return a.begin_ns < b.begin_ns; });
  std::map<std::pair<std::string, std::string>, IdleTime> between;
  const Launch* last = &launches.front();  // the one that ends latest so far
  for (const Launch& next : launches) {
    if (next.begin_ns > last->end_ns) {
      IdleTime& idle = between[{last->name, next.name}];
      ++idle.times;
      idle.seconds += static_cast<double>(next.begin_ns - last->end_ns) * 1e-9;
    }
    if (next.end_ns > last->end_ns) last = &next;
  }
  profile.span_s = static_cast<double>(last->end_ns - launches.front().begin_ns) * 1e-9;
  for (auto& [names, idle] : between) {
    std::tie(idle.after, idle.before) = names;
    profile.idle_s += idle.seconds;
    profile.idle.push_back(std::move(idle));
  }
  sort_by_seconds(profile.idle);
}

}  // namespace

std::string kernel_kind(const std::string& name) {
  const std::string lower = lower_case(name);
  for (const auto& [part, kind] : kPatterns) {
    if (lower.find(part) != std::string::npos) return kind;
  }
  return "other";
}

KernelProfile profile_kernels(const std::function<void()>& work, bool device) {
  const ProfilerConfig config(ProfilerState::KINETO);
  const std::set<ActivityType> activities{device ? ActivityType::CUDA : ActivityType::CPU};
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities);
  work();
  const auto result = profiler::disableProfiler();
  std::map<std::string, KernelTime> by_name;
  std::vector<Launch> computation;
  for (const auto& event : result->events()) {
    if (device && event.deviceType() != c10::DeviceType::CUDA) continue;
    KernelTime& time = by_name[event.name()];
    ++time.launches;
    time.seconds += static_cast<double>(event.durationNs()) * 1e-9;
    if (device && kernel_kind(event.name()) != "collective") {
      computation.push_back({event.startNs(), event.startNs() + event.durationNs(), event.name()});
    }
  }
  KernelProfile profile;
  for (auto& [name, time] : by_name) {
    time.name = name;
    time.kind = kernel_kind(name);
    profile.kernels.push_back(std::move(time));
  }
  sort_by_seconds(profile.kernels);
  add_idle_times(std::move(computation), profile);
  return profile;
}

}  // namespace tessera
