// Ranks as threads of one process, for tests and for one rank alone.
//
// A communicator belongs to its rank's thread. Buffers are host memory that the other threads read
// and write directly between two barriers. Reductions run in rank order, so results have the same
// bits on every member and in every run. A rank that ends, or destroys its communicator, while
// others still wait for it is lost to them.
#pragma once

#include <functional>

#include "executor/comm/communicator.h"

namespace tessera {

/// Runs fn(world) on `ranks` threads and returns when all have ended. Throws what a rank threw: the
/// first (by rank) exception that is not PeerLost, or else the first PeerLost.
void run_ranks(int ranks, const std::function<void(Communicator& world)>& fn);

/// A world of this one process and rank.
std::unique_ptr<Communicator> make_solo_world();

}  // namespace tessera
