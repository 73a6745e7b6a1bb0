// RoundMessages: sends and receives of one round of a reshard between the memories themselves.
//
// Used where peers' memory cannot be read. Keeps references. Collective, one thread; bytes.
#pragma once

#include <cstdint>
#include <functional>

#include "executor/transfers/reshard_rounds.h"

namespace tessera {

/// Whether a transfer of a round, by index, is to be moved.
using WantedTransfers = std::function<bool(int)>;

class RoundMessages {
 public:
  RoundMessages(const PlacedReshard& plan, const ReshardSite& site) : plan_(plan), site_(site) {}

  /// Moves those transfers of a round that `wanted` selects, from `from` to `to`; both ends of an
  /// edge select alike. Sources are final on every rank. Returns the bytes that come from peers.
  std::int64_t send(const ReshardRound& round, const void* from, void* to,
                    const WantedTransfers& wanted);
  /// Ranks meet when all of them have sent.
  void settle() { site_.world->barrier(); }

 private:
  bool uneven() const;

  const PlacedReshard& plan_;
  const ReshardSite& site_;
};

}  // namespace tessera
