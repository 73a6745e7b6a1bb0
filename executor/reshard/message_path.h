// MessagePath: a reshard by messages, through stages where small ones are merged.
#pragma once

#include <memory>

#include "executor/reshard/reshard_path.h"
#include "executor/transfers/staged_exchange.h"

namespace tessera {

class MessagePath final : public ReshardPath {
 public:
  explicit MessagePath(const PathSetup& setup)
      : ReshardPath(setup), messages_(setup.plan, setup.site) {}

  ReshardTransport transport() const override { return ReshardTransport::send_recv; }
  std::int64_t run() override;
  std::int64_t begin(const ReshardRound& round, const RoundMemory& memory,
                     const WantedTransfers& wanted) override;
  void end() override { messages_.settle(); }
  std::int64_t stage_bytes() const override { return staged_ ? staged_->stage_bytes() : 0; }
  void rest() override { staged_.reset(); }

 private:
  RoundMessages messages_;
  std::unique_ptr<StagedExchange> staged_;  // nullptr before the first run, and where nothing moves
};

/// The plan's messages through stages; nullptr where nothing moves. Collective.
std::unique_ptr<StagedExchange> make_staged_exchange(const PathSetup& setup,
                                                     const PlacedReshard& plan);

}  // namespace tessera
