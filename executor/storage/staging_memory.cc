#include "executor/storage/staging_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "cost_models/documents/out_of_memory.h"
#include "executor/threads/shared_work.h"

namespace tessera {
namespace {

constexpr int kThreads = 4;
constexpr std::int64_t kTouched = std::int64_t{64} << 20, kPage = 4096;

}  // namespace

struct StagingMemory::State {
  State(std::int64_t size, Pinning how, std::int64_t at_once)
      : bytes(size),
        piece(at_once),
        mapped(static_cast<std::size_t>(std::max<std::int64_t>(size, 1))),
        pinning(std::move(how)) {
    data = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
      throw OutOfMemory("host memory", size, std::strerror(errno));
    }
    madvise(data, mapped, MADV_HUGEPAGE);  // where the system has large pages
    worker = std::thread([this] { make(); });
  }

  ~State() {
    stopped = true;
    wait();
    for (void* each : pinned) pinning.unpin(each);
    munmap(data, mapped);
  }

  void wait() {
    std::call_once(joined, [this] { worker.join(); });
  }

  void make() {
    auto* const first = static_cast<std::byte*>(data);
    for (std::int64_t at = 0; at < bytes && !stopped; at += piece) {
      const std::int64_t size = std::min(piece, bytes - at);
      share_work(size, kTouched, kThreads, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end && !stopped; i += kPage) first[at + i] = std::byte{0};
      });
      if (pinning.pin && pinning.pin(first + at, size)) pinned.push_back(first + at);
    }
  }

  std::int64_t bytes, piece;
  std::size_t mapped;
  Pinning pinning;
  void* data = nullptr;
  std::vector<void*> pinned;  // the worker's until it has ended
  std::atomic<bool> stopped = false;
  std::thread worker;
  std::once_flag joined;
};

StagingMemory::StagingMemory(std::int64_t bytes, Pinning pinning, std::int64_t piece)
    : state_(std::make_unique<State>(bytes, std::move(pinning), piece)) {}
StagingMemory::~StagingMemory() = default;

void* StagingMemory::data() const {
  state_->wait();
  return state_->data;
}

std::int64_t StagingMemory::bytes() const { return state_->bytes; }

void StagingMemory::pieces(
    std::int64_t first, std::int64_t bytes,
    const std::function<void(std::int64_t first, std::int64_t bytes)>& part) const {
  for (std::int64_t at = first; at < first + bytes;) {
    const std::int64_t end = std::min(first + bytes, (at / state_->piece + 1) * state_->piece);
    part(at, end - at);
    at = end;
  }
}

}  // namespace tessera
