// A ReshardPlan compiled to byte ranges for one rank: what it sends, receives and copies.
//
// Made once from metadata and replayed in every reshard. Torch-free; the caller owns the memory.
// Offsets are relative to the start of the source and of the destination memory.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cost_models/layout/reshard_plan.h"
#include "executor/arena/arena_layout.h"
#include "executor/comm/communicator.h"

namespace tessera {

/// The bytes of a box of a tensor inside one rank's memory, in row-major order of the box's memory
/// layout. Both ends must order the box's elements alike.
/// A box that is exchanged with a peer must be cut into equally many ranges on both ends.
using LocateBox = std::function<std::vector<ByteRange>(int tensor, const Box& box)>;

/// Looks boxes up in an arena. The arena must outlive the function.
LocateBox locate_in(const ArenaLayout& arena);

/// One contiguous message or copy; `peer` is a global rank.
struct ByteMove {
  int peer = 0;
  ByteRange range;
  bool operator==(const ByteMove&) const = default;
};

struct ByteSchedule {
  std::vector<ByteMove> sends, receives;  // matched in order between each pair of ranks
  struct Copy {
    std::int64_t from = 0, to = 0, bytes = 0;
  };
  std::vector<Copy> copies;  // what stays on this rank
  std::int64_t sent = 0, received = 0, kept = 0;
};

/// This rank's part of the transfers that `wanted` selects (all, by default): one message per
/// transfer and range, in the plan's order on both ends. Throws Error(internal) when the two ends
/// of a copy differ in size.
ByteSchedule compile(const ReshardPlan& plan, int rank, const LocateBox& source,
                     const LocateBox& destination,
                     const std::function<bool(const Transfer&)>& wanted = {});

/// Moves the bytes. `world` ranks are global ranks. Collective over the world. In rounds: in round
/// k every rank sends to the k-th after it and receives from the k-th before it, so that nobody is
/// asked by all at once; else all in one exchange. Device memory: ordered on the communicator's
/// stream.
void execute(const ByteSchedule& schedule, const void* source, void* destination,
             Communicator& world, bool in_rounds = true);

}  // namespace tessera
