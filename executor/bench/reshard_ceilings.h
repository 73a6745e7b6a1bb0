// Ceilings of reshards: what this machine gives for bytes in one piece per peer.
//
// Collective; every rank gets equal results. Each object has the keys of timing_json.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "executor/bench/reshard_rig.h"
#include "executor/storage/host_signals.h"
#include "executor/transfers/pull_traffic.h"

namespace tessera {

class ReshardCeilings {
 public:
  ReshardCeilings(const BenchSite& site, int repetitions);

  /// Copies of so many bytes out of all peers' memory into this rank's; `in_steps`: from one peer
  /// at a time, none read by two.
  nlohmann::json pull(std::int64_t bytes, bool in_steps = false);

  /// One flat all-gather by the world's communicator, of so many bytes received.
  nlohmann::json gather(std::int64_t bytes);

  /// One message from each rank to each, of `traffic[from][to]` bytes; the rate is that of
  /// `received`.
  nlohmann::json messages(const PullTraffic& traffic, std::int64_t received);

 private:
  std::int64_t part_of(std::int64_t bytes) const;

  const BenchSite& site_;
  int repetitions_, ranks_, rank_;
  HostSignals signals_;
};

}  // namespace tessera
