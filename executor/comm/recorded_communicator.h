// A world whose operations, and those of all groups that are split from it, a flight recorder
// notes.
//
// For operations that return when they are done (MPI, threads); NCCL's groups note theirs
// themselves. The recorder outlives the world. Threads as Communicator has them.
#pragma once

#include <memory>

#include "executor/comm/communicator.h"
#include "simulator/flight_recorder/flight_recorder.h"

namespace tessera {

std::unique_ptr<Communicator> recorded(std::unique_ptr<Communicator> world,
                                       FlightRecorder& recorder);

/// The bytes that a rank sends or receives in an exchange, whichever are more, and with whom.
CollectiveCall call_of(std::span<const SendBlock> sends, std::span<const ReceiveBlock> receives);

/// The name in all records of a run of a group that was split as number `split` from `parent`;
/// groups of one split have different first members.
std::string path_of_split(const std::string& parent, int split, std::span<const int> members);

}  // namespace tessera
