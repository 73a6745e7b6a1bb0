#include "executor/storage/host_signals.h"

#include <sched.h>

#include <chrono>
#include <string>
#include <thread>

namespace tessera {
namespace {

/// Polls of a wait before it yields, and before it sleeps between them: some 10 ms.
constexpr int kBusyPolls = 200, kYieldedPolls = 20000;
constexpr std::chrono::microseconds kNap{100};

}  // namespace

HostSignals::HostSignals(Communicator& host, double timeout_s)
    : rank_(host.rank()),
      size_(host.size()),
      timeout_s_(timeout_s),
      mine_(make_host_block(sizeof(Page))),  // zero bytes are counters at zero
      peers_(host, mine_.get()) {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
}

void HostSignals::raise(int slot, std::uint64_t value) {
  page(rank_).slots[slot].value.store(value, std::memory_order_release);
}

std::uint64_t HostSignals::value(int rank, int slot) const {
  return page(rank).slots[slot].value.load(std::memory_order_acquire);
}

void HostSignals::await(int rank, int slot, std::uint64_t wanted) const {
  const auto begin = std::chrono::steady_clock::now();
  for (int polls = 0; value(rank, slot) < wanted; ++polls) {
    if (page(rank).aborted.value.load(std::memory_order_acquire) != 0 ||
        page(rank_).aborted.value.load(std::memory_order_acquire) != 0) {
      throw PeerLost(rank, "rank " + std::to_string(rank) + " gave up");
    }
    if (polls < kBusyPolls) continue;
    if (polls < kYieldedPolls) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(kNap);
    }
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
    if (waited.count() > timeout_s_) {
      throw PeerLost(rank, "rank " + std::to_string(rank) + " did not come within " +
                               std::to_string(timeout_s_) + " s");
    }
  }
}

void HostSignals::await_all(int slot, std::uint64_t wanted) const {
  for (int r = 0; r < size_; ++r) await(r, slot, wanted);
}

void HostSignals::barrier() {
  raise(0, ++generation_);
  await_all(0, generation_);
}

void HostSignals::abort() { page(rank_).aborted.value.store(1, std::memory_order_release); }

}  // namespace tessera
