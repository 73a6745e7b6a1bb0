// PeerReads: the copies of one rank out of its peers' memory, and their order.
//
// Batches of whole rounds are compiled once, and cut into steps where no source is to have two
// readers. Only ranks of one host read one another's memory; both
// ends of an edge decide alike. Keeps references. One thread; bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "executor/storage/host_signals.h"
#include "executor/storage/peer_blocks.h"
#include "executor/transfers/reshard_rounds.h"
#include "executor/transfers/weight_reshard_options.h"

namespace tessera {

/// The memories that a round reads and writes on this rank, and its peers' of the first kind.
struct RoundMemory {
  const PeerBlocks* peers = nullptr;
  const void* from = nullptr;
  void* to = nullptr;
};

class PeerReads {
 public:
  /// Collective where reads go in steps.
  PeerReads(const PlacedReshard& plan, const ReshardSite& site, HostSignals& signals,
            const WeightReshardOptions& options);

  bool reads(int peer) const { return signals_.same_host(peer); }
  /// Begins all of round k of the reshard, whose memories do not change. Returns the bytes that
  /// come from peers.
  std::int64_t start(const ReshardRounds& rounds, std::size_t k, const RoundMemory& memory);
  /// Begins those transfers of a round that `wanted` selects, by index; likewise.
  std::int64_t start(const ReshardRound& round, const RoundMemory& memory,
                     const std::function<bool(int)>& wanted);

 private:
  /// One peer at a time; what stays on this rank goes beside.
  struct Steps {
    std::vector<CopyBatch> kept;
    std::vector<CopyBatch> steps;  // as many on every rank
  };
  std::vector<CopyBatch> batches_of(const ReshardRound& round, const RoundMemory& memory,
                                    const std::function<bool(int)>& wanted) const;
  Steps steps_of(const ReshardRound& round, const RoundMemory& memory) const;
  void add(CopyBatch& batch, const Pull& pull, const RoundMemory& memory) const;

  const PlacedReshard& plan_;
  const ReshardSite& site_;
  HostSignals& signals_;
  std::int64_t copy_bytes_;
  int rank_;
  std::unique_ptr<StreamBarrier> barrier_;                      // nullptr = reads go together
  std::vector<std::optional<std::vector<CopyBatch>>> batches_;  // by round
  std::vector<std::optional<Steps>> steps_;
};

}  // namespace tessera
