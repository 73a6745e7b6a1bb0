// ReadPath: a reshard by reads of peers' memory on one host, and by messages to other hosts.
#pragma once

#include "executor/reshard/reshard_path.h"

namespace tessera {

class ReadPath final : public ReshardPath {
 public:
  /// Collective where reads go in steps.
  explicit ReadPath(const PathSetup& setup);

  ReshardTransport transport() const override;
  std::int64_t begin(std::size_t k) override;
  std::int64_t begin(const ReshardRound& round, const RoundMemory& memory,
                     const WantedTransfers& wanted) override;
  void end() override;

 private:
  std::int64_t send_to_other_hosts(const ReshardRound& round, const RoundMemory& memory,
                                   const WantedTransfers& wanted);

  PeerReads reads_;
  RoundMessages messages_;
};

}  // namespace tessera
