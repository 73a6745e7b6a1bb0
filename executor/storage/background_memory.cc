#include "executor/storage/background_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <thread>

#include "cost_models/documents/out_of_memory.h"
#include "executor/threads/shared_work.h"

namespace tessera {
namespace {

constexpr int kThreads = 4;
constexpr std::int64_t kTouched = std::int64_t{64} << 20, kPage = 4096;

}  // namespace

struct BackgroundMemory::State {
  explicit State(std::int64_t size)
      : bytes(size), mapped(static_cast<std::size_t>(std::max<std::int64_t>(size, 1))) {
    data = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
      throw OutOfMemory("host memory", size, std::strerror(errno));
    }
    madvise(data, mapped, MADV_HUGEPAGE);  // where the system has large pages
    worker = std::thread([this] { touch(); });
  }

  ~State() {
    stopped = true;
    wait();
    munmap(data, mapped);
  }

  void wait() {
    std::call_once(joined, [this] { worker.join(); });
  }

  void touch() {
    auto* const first = static_cast<std::byte*>(data);
    share_work(bytes, kTouched, kThreads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t at = begin; at < end && !stopped; at += kPage) first[at] = std::byte{0};
    });
  }

  std::int64_t bytes;
  std::size_t mapped;
  void* data = nullptr;
  std::atomic<bool> stopped = false;
  std::thread worker;
  std::once_flag joined;
};

BackgroundMemory::BackgroundMemory(std::int64_t bytes) : state_(std::make_unique<State>(bytes)) {}
BackgroundMemory::~BackgroundMemory() = default;

void* BackgroundMemory::data() const {
  state_->wait();
  return state_->data;
}

std::int64_t BackgroundMemory::bytes() const { return state_->bytes; }

}  // namespace tessera
