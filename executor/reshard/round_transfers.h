// Carries one round of a switch out: reads of peers' memory on one host, messages elsewhere.
//
// Used by WeightSwitch. Keeps references. Collective, one thread; bytes.
#pragma once

#include <cstdint>
#include <functional>

#include "executor/reshard/read_path.h"
#include "executor/reshard/switch_rounds.h"
#include "executor/storage/host_signals.h"

namespace tessera {

class RoundTransfers {
 public:
  RoundTransfers(const SwitchPlan& plan, const SwitchSite& site, HostSignals& signals,
                 const SwitchOptions& options)
      : plan_(plan), site_(site), signals_(signals), reads_(plan, site, signals, options) {}

  /// False: everything travels by messages. Alike on every rank.
  void use_reads(bool use) { use_reads_ = use; }

  /// Begins all of round k of a switch whose memories do not change; sources are final on every
  /// rank. Returns the bytes that come from peers.
  std::int64_t start(const SwitchRounds& rounds, std::size_t k, const RoundMemory& memory);
  /// Begins those transfers of a round that `wanted` selects, by index; likewise.
  std::int64_t start(const SwitchRound& round, const RoundMemory& memory,
                     const std::function<bool(int)>& wanted);
  /// Returns when what was started has arrived here.
  void settle();

 private:
  bool sends_messages() const { return !use_reads_ || !signals_.usable(); }
  std::int64_t send(const SwitchRound& round, const RoundMemory& memory,
                    const std::function<bool(int)>& wanted);
  bool uneven() const;

  const SwitchPlan& plan_;
  const SwitchSite& site_;
  HostSignals& signals_;
  ReadPath reads_;
  bool use_reads_ = true;
};

}  // namespace tessera
