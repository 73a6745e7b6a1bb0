// The messages of a reshard: small ones merged to one between each pair of ranks in every round.
//
// Many small messages cost more than their bytes; large ones travel by themselves, from their place
// to their place. What a rank sends to a peer in a merged message is packed where it is not
// contiguous in its memory, and lands in one piece likewise; each end decides for itself. Two
// halves of both stages alternate, so that one round travels while the last one is unpacked and the
// next one packed. Pure functions of metadata; offsets in bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/transfers/reshard_site.h"
#include "executor/transfers/staged_rounds.h"

namespace tessera {

struct MessageRound {
  struct Message {
    int peer = 0;
    bool staged = false;  // `range` lies in the stage; else in the source or destination memory
    ByteRange range;
  };
  using Copy = StagedCopy;
  std::vector<Message> sends, receives;  // matched in order between each pair of ranks
  std::vector<Copy> pack;                // source memory -> outgoing stage
  std::vector<Copy> unpack;              // incoming stage -> destination memory
  std::vector<Copy> kept;                // source -> destination memory
};

struct MessageRounds {
  std::vector<MessageRound> rounds;          // as many on every rank
  std::int64_t out_bytes = 0, in_bytes = 0;  // of this rank's stages; of many rounds both halves
};

/// Transfers of fewer than `limits.merge_below` bytes are merged, and those that are not contiguous
/// at both ends. Rounds of so many bytes that no rank's stages together are larger than
/// `limits.stage_bytes`, but for rounding to rows of the tensors and alignment.
MessageRounds staged_messages(const PlacedReshard& plan, int rank, int ranks,
                              const MergeLimits& limits);

}  // namespace tessera
