// The messages of a switch, merged: one between each pair of ranks in every round.
//
// Many small messages cost more than their bytes. What a rank sends to a peer in a round is packed
// into one message where it is not contiguous in its memory, and lands in one piece likewise; each
// end decides for itself. Two halves of both stages alternate, so that one round travels while the
// last one is unpacked and the next one packed. Pure functions of metadata; offsets in bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/reshard/weight_switch.h"

namespace tessera {

struct MessageRound {
  struct Message {
    int peer = 0;
    bool staged = false;  // `range` lies in the stage; else in the source or destination memory
    ByteRange range;
  };
  struct Copy {
    std::int64_t from = 0, to = 0, bytes = 0;
  };
  std::vector<Message> sends, receives;
  std::vector<Copy> pack;    // source memory -> outgoing stage
  std::vector<Copy> unpack;  // incoming stage -> destination memory
  std::vector<Copy> kept;    // source -> destination memory
};

struct MessageRounds {
  std::vector<MessageRound> rounds;          // as many on every rank
  std::int64_t out_bytes = 0, in_bytes = 0;  // of this rank's stages, both halves
};

/// Rounds of so many bytes that no rank's stages together are larger than `stage_bytes`, but for
/// rounding to rows of the tensors and alignment.
MessageRounds staged_messages(const SwitchPlan& plan, int rank, int ranks,
                              std::int64_t stage_bytes);

}  // namespace tessera
