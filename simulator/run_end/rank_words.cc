#include "simulator/run_end/rank_words.h"

#include "simulator/flight_recorder/collective_waits.h"

namespace tessera {

std::string where(const RankStatus& rank) {
  return "rank " + std::to_string(rank.rank) + " in phase " + rank.phase + " of step " +
         std::to_string(rank.step);
}

std::string where_since(const RankStatus& rank) {
  return where(rank) + ", since " + clock_of(rank.phase_since_ns);
}

}  // namespace tessera
