// ReshardPath: one way in which the weights of a reshard travel: reads, messages or gathers.
//
// WeightReshard owns the one that it uses and knows no other. Functions are collective over the
// site's world, one thread. Paths keep references to their setup. Bytes.
#pragma once

#include <cstdint>

#include "executor/storage/host_signals.h"
#include "executor/transfers/peer_reads.h"
#include "executor/transfers/reshard_rounds.h"
#include "executor/transfers/round_messages.h"
#include "executor/transfers/weight_reshard_options.h"

namespace tessera {

/// All that a path is made of; outlives it.
struct PathSetup {
  const PlacedReshard& plan;
  const ReshardSite& site;
  const WeightReshardOptions& options;
  const ReshardRounds& rounds;  // of all weights as they are; none where types differ
  HostSignals& signals;
  RoundMemory memory;  // of the site

  int ranks() const { return site.host->size(); }
  /// Peers' memory can be read: buffers', where weights are cast.
  bool can_read() const;
  /// Rounds of messages need copies within memory of the site's kind.
  bool can_stage() const { return site.copies != nullptr || !site.make_block; }
  bool moves_all_as_they_are() const;
  /// The most that stages of merged messages hold.
  std::int64_t stage_bytes() const;
};

class ReshardPath {
 public:
  explicit ReshardPath(const PathSetup& setup) : setup_(setup) {}
  virtual ~ReshardPath() = default;
  ReshardPath(const ReshardPath&) = delete;

  virtual ReshardTransport transport() const = 0;

  /// Moves everything, whatever has changed; sources are final on every rank. When it returns all
  /// has arrived here. Returns the bytes that came from peers. By default round by round.
  virtual std::int64_t run();

  /// Begins all of round k of the setup's rounds; sources are final on every rank. Returns the
  /// bytes that come from peers.
  virtual std::int64_t begin(std::size_t k);
  /// Begins those transfers of any round that `wanted` selects; likewise.
  virtual std::int64_t begin(const ReshardRound& round, const RoundMemory& memory,
                             const WantedTransfers& wanted) = 0;
  /// Returns when what was begun has arrived here.
  virtual void end() = 0;

  /// Memory that the path holds itself.
  virtual std::int64_t stage_bytes() const { return 0; }
  /// Gives stages back until the next run().
  virtual void rest() {}

 protected:
  const PathSetup& setup_;
};

/// The transport reads peers' memory, by copy engines or by the host.
bool reads_peers(ReshardTransport transport);

}  // namespace tessera
