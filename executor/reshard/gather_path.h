// GatherPath: a reshard by all-gathers where they can do it, and by messages elsewhere.
#pragma once

#include <memory>

#include "executor/reshard/reshard_path.h"
#include "executor/transfers/all_gathers.h"
#include "executor/transfers/staged_exchange.h"

namespace tessera {

class GatherPath final : public ReshardPath {
 public:
  /// Collective.
  explicit GatherPath(const PathSetup& setup);

  /// No all-gather can do anything. Alike on every rank.
  bool nothing() const { return gathers_.nothing(); }

  ReshardTransport transport() const override;
  std::int64_t run() override;
  /// Parts of a round go by messages.
  std::int64_t begin(const ReshardRound& round, const RoundMemory& memory,
                     const WantedTransfers& wanted) override;
  void end() override { messages_.settle(); }
  std::int64_t stage_bytes() const override;
  void rest() override;

 private:
  RoundMessages messages_;
  AllGathers gathers_;
  bool prepared_ = false;                 // rest_ is made
  std::unique_ptr<StagedExchange> rest_;  // of what no all-gather does; nullptr where all is done
};

}  // namespace tessera
