// Counters that ranks of one host raise and wait for: barriers and progress in a microsecond.
//
// Each rank owns a page of shared memory that the others read. One thread per object waits or
// raises at a time, except abort(). Waiting polls, yields and, when it is long, sleeps; a peer that
// does not come in time, or gave up, is PeerLost with its rank.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/storage/peer_blocks.h"

namespace tessera {

class HostSignals {
 public:
  static constexpr int kSlots = 8;

  /// Collective over `host`, whose ranks must all be on one host (usable() tells).
  explicit HostSignals(Communicator& host, double timeout_s = 600);

  bool usable() const { return peers_.all_on_one_host(); }
  bool same_host(int rank) const { return peers_.same_host(rank); }
  /// Raises this rank's counter; what was written before is visible to who sees the new value.
  void raise(int slot, std::uint64_t value);
  std::uint64_t value(int rank, int slot) const;
  /// Returns when the rank's counter has reached `value`.
  void await(int rank, int slot, std::uint64_t value) const;
  void await_all(int slot, std::uint64_t value) const;
  /// Slot 0 is the barrier's.
  void barrier();
  /// Makes every wait for this rank, here and elsewhere, throw.
  void abort();

 private:
  struct Page {
    struct alignas(64) Slot {
      std::atomic<std::uint64_t> value;
    };
    Slot slots[kSlots];
    Slot aborted;
  };
  Page& page(int rank) const { return *reinterpret_cast<Page*>(peers_.at(rank)); }

  int rank_, size_;
  double timeout_s_;
  std::unique_ptr<SharedBlock> mine_;
  PeerBlocks peers_;
  std::uint64_t generation_ = 0;
};

}  // namespace tessera
