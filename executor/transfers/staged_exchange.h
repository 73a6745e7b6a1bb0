// StagedExchange: messages of one rank in a reshard: their rounds, stages and local copies.
//
// Made once; run() is collective over the site's world. Keeps references to what the site points
// to. One thread; bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "executor/transfers/staged_messages.h"

namespace tessera {

class StagedExchange {
 public:
  /// Collective. Without `merge_below` everything is merged where most of it lies in one piece at
  /// both ends, so that merging costs no copies, else what is short of 16 MiB (benchmarks/results).
  StagedExchange(const PlacedReshard& plan, const ReshardSite& site,
                 std::optional<std::int64_t> merge_below, std::int64_t stage_bytes);

  /// Moves everything of the plan; sources are final. When it returns everything has arrived here.
  /// Returns the bytes that came from peers.
  std::int64_t run();
  std::int64_t stage_bytes() const { return messages_.out_bytes + messages_.in_bytes; }

 private:
  void post(const MessageRound& round);

  ReshardSite site_;
  MessageRounds messages_;
  std::unique_ptr<SharedBlock> out_, in_;                // stages; nullptr where nothing is staged
  std::unique_ptr<BlockCopies> own_copies_;              // where the site has none
  std::vector<std::shared_ptr<const void>> registered_;  // with the world; before what it is of
};

}  // namespace tessera
