#include "executor/memory/memory_watch.h"

#include <ATen/Context.h>
#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <new>
#include <string_view>

#include "cost_models/documents/out_of_memory.h"
#include "cost_models/documents/problem.h"
#include "executor/memory/counting_allocator.h"
#include "executor/storage/held_bytes.h"
#include "executor/storage/shared_block.h"

namespace tessera {
namespace {

namespace cuda_allocator = c10::cuda::CUDACachingAllocator;

constexpr std::size_t kLargest = 8;  // sizes of tensors that a refusal lists

struct DeviceMemory {
  std::int64_t used = 0, total = 0;
};

/// Of the whole GPU; all zero where the driver does not answer.
DeviceMemory memory_of(int device) {
  std::size_t free = 0, total = 0;
  if (cudaSetDevice(device) != cudaSuccess || cudaMemGetInfo(&free, &total) != cudaSuccess) {
    return {};
  }
  return {static_cast<std::int64_t>(total - free), static_cast<std::int64_t>(total)};
}

struct TorchMemory {
  std::int64_t allocated = 0, reserved = 0;
};

TorchMemory torch_memory(int device) {
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto stats = cuda_allocator::getDeviceStats(static_cast<c10::DeviceIndex>(device));
  return {stats.allocated_bytes[kAll].current, stats.reserved_bytes[kAll].current};
}

/// Resident memory of this process (proc(5)).
std::int64_t resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6)) << 10;
  }
  return 0;
}

/// The largest sizes first.
std::vector<LiveTensors> largest_of(const std::map<std::int64_t, std::int64_t>& count_of) {
  std::vector<LiveTensors> largest;
  for (auto each = count_of.rbegin(); each != count_of.rend() && largest.size() < kLargest;
       ++each) {
    largest.push_back({each->first, each->second});
  }
  return largest;
}

std::map<std::int64_t, std::int64_t> live_on(int device) {
  std::map<std::int64_t, std::int64_t> count_of;
  for (const auto& segment : cuda_allocator::snapshot({0, 0}, false).segments) {
    if (segment.device != device) continue;
    for (const auto& block : segment.blocks) {
      if (block.allocated) ++count_of[static_cast<std::int64_t>(block.requested_size)];
    }
  }
  return count_of;
}

// Memory grows and shrinks by pages. Blocks of the sizes that were asked for, torch's own way, held
// 26 % more than was in use in steps whose batches differ in length, and pages 0.1 %, at the same
// speed (benchmarks/results/h200x2-executor-memory.json).
constexpr const char* kOwnSettings = "expandable_segments:True";

/// What the run says, else what the environment says, else our own.
std::string settings_in_force(const std::string& given) {
  if (!given.empty()) return given;
  for (const char* name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}) {
    if (const char* value = std::getenv(name)) return value;
  }
  return kOwnSettings;
}

void configure_allocator(const std::string& settings) {
  try {
    c10::CachingAllocator::setAllocatorSettings(settings);
  } catch (const c10::Error& error) {
    throw Error(ExitCode::bad_input, {Problem{.file = "trainer.allocator",
                                              .found = "'" + settings + "'",
                                              .expected = "settings of torch's allocator",
                                              .hint = error.what_without_backtrace()}});
  }
}

bool says_out_of_memory(std::string_view text) {
  constexpr std::array<std::string_view, 4> kWords{"out of memory", "can't allocate memory",
                                                   "CUBLAS_STATUS_ALLOC_FAILED",
                                                   "CUDNN_STATUS_ALLOC_FAILED"};
  return std::any_of(kWords.begin(), kWords.end(), [&](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

}  // namespace

struct MemoryWatch::State {
  int device = -1;
  std::int64_t limit = 0;    // 0 = none but the device's
  std::int64_t context = 0;  // in use of the GPU when this was made
  std::string allocator;
  std::shared_ptr<CountedTensors> counted;  // of a CPU with a limit
  std::mutex mutex;
  std::optional<MemoryRefusal> refused;  // torch's last refusal

  MemoryInUse in_use() const {
    MemoryInUse use;
    if (device >= 0) {
      const TorchMemory torch = torch_memory(device);
      use.tensors = torch.allocated;
      use.idle = torch.reserved - torch.allocated;
      use.arenas = device_block_bytes();
      use.context = context;
      use.libraries = std::max<std::int64_t>(0, memory_of(device).used - use.total());
      return use;
    }
    use.arenas = held_host_bytes().bytes;
    if (counted == nullptr) {
      use.libraries = std::max<std::int64_t>(0, resident_bytes() - use.arenas);
      return use;
    }
    const std::lock_guard lock(counted->mutex);
    use.tensors = counted->bytes;
    return use;
  }

  MemoryRefusal refusal(const std::string& asked_by, std::int64_t requested) const {
    MemoryRefusal made{.asked_by = asked_by,
                       .requested = requested,
                       .limit = limit,
                       .in_use = in_use(),
                       .allocator = allocator};
    if (device >= 0) {
      if (limit == 0) made.limit = memory_of(device).total;
      made.largest = largest_of(live_on(device));
    } else if (counted != nullptr) {
      const std::lock_guard lock(counted->mutex);
      made.largest = largest_of(counted->count_of);
    }
    return made;
  }

  void note_refusal(std::int64_t requested) {
    MemoryRefusal made = refusal("torch", requested);
    const std::lock_guard lock(mutex);
    refused = std::move(made);
  }

  /// Before a CPU tensor of so many bytes is made.
  void admit(std::int64_t bytes) {
    {
      const std::lock_guard lock(counted->mutex);
      if (counted->bytes + held_host_bytes().bytes + bytes <= limit) return;
    }
    note_refusal(bytes);
    TORCH_CHECK_WITH(OutOfMemoryError, false, "a tensor of ", bytes,
                     " bytes exceeds the run's limit of memory, ", limit, " bytes");
  }
};

MemoryWatch::MemoryWatch(int device, const MemoryOptions& options)
    : state_(std::make_shared<State>()) {
  state_->device = device;
  state_->limit = options.limit_bytes;
  if (device >= 0 || !options.allocator.empty()) {
    state_->allocator = settings_in_force(options.allocator);
    configure_allocator(state_->allocator);
  }
  if (device >= 0) {
    at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
    state_->context = memory_of(device).used;
    // torch calls it without its lock, before it throws: the tensors of the failing operation are
    // still there.
    cuda_allocator::attachOutOfMemoryObserver(
        [state = state_](std::int64_t, std::size_t requested, std::size_t, std::size_t) {
          state->note_refusal(static_cast<std::int64_t>(requested));
        });
  } else if (state_->limit > 0) {
    state_->counted = std::make_shared<CountedTensors>();
    install_counting_allocator(state_->counted,
                               [state = state_](std::int64_t bytes) { state->admit(bytes); });
  }
  hold_limit();
}

void MemoryWatch::hold_limit() const {
  if (state_->limit == 0) return;
  const MemoryInUse use = state_->in_use();
  if (use.total() - use.idle > state_->limit) {
    throw OutOfMemory("arenas", 0,
                      std::to_string(use.total() - use.idle) +
                          " bytes are in use, and the run's limit of memory is " +
                          std::to_string(state_->limit) + " bytes");
  }
  if (state_->device < 0) return;
  const std::int64_t torch = state_->limit - (use.total() - use.tensors - use.idle);
  const double part =
      static_cast<double>(torch) / static_cast<double>(memory_of(state_->device).total);
  cuda_allocator::setMemoryFraction(std::clamp(part, 0.0, 1.0),
                                    static_cast<c10::DeviceIndex>(state_->device));
}

MemoryRefusal MemoryWatch::refusal(const std::string& asked_by, std::int64_t requested) const {
  return state_->refusal(asked_by, requested);
}

std::optional<MemoryRefusal> MemoryWatch::refusal_of(const std::exception& error) const {
  if (const auto* own = dynamic_cast<const OutOfMemory*>(&error)) {
    return refusal(own->asked_by(), own->requested());
  }
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) {
    const std::lock_guard lock(state_->mutex);
    if (state_->refused) return state_->refused;
    return refusal("torch", 0);
  }
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return refusal("the host", 0);
  const auto* other = dynamic_cast<const c10::Error*>(&error);
  if (other != nullptr && says_out_of_memory(other->what_without_backtrace())) {
    return refusal("a library", 0);
  }
  return std::nullopt;
}

}  // namespace tessera
