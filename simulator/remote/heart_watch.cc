#include "simulator/remote/heart_watch.h"

namespace tessera {

std::vector<Pulse> HeartWatch::look(const std::vector<RankStatus>& ranks, std::int64_t as_of_ns) {
  std::vector<Pulse> pulses;
  for (const RankStatus& rank : ranks) {
    const auto [place, first] = ranks_.try_emplace(rank.rank, Seen{rank.beats, as_of_ns});
    Seen& seen = place->second;
    if (!first && rank.beats != seen.beats) seen = {rank.beats, as_of_ns, true};
    const bool silent = as_of_ns - seen.changed_ns > kSilentNs;
    pulses.push_back(silent ? Pulse::silent : seen.beat ? Pulse::beating : Pulse::unknown);
  }
  return pulses;
}

}  // namespace tessera
