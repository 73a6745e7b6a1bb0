// Which ranks of a run on another host live, judged by their heartbeats alone.
//
// Process numbers of another host say nothing here. What counts is whether a rank's count of beats
// changed from one look to the next, by the clock of the run's host, so that time in which nobody
// was reached counts for no rank. On a shared file system beats come in bunches of up to 100 s:
// a rank is silent after 120 s. One owner, one thread.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "simulator/timeline/rank_status.h"

namespace tessera {

/// `unknown`: it was not looked at for long enough.
enum class Pulse : std::uint8_t { unknown, beating, silent };

class HeartWatch {
 public:
  static constexpr std::int64_t kSilentNs = 120'000'000'000;

  /// The ranks as they were at `as_of_ns`; their pulses, in their order.
  std::vector<Pulse> look(const std::vector<RankStatus>& ranks, std::int64_t as_of_ns);

 private:
  struct Seen {
    std::int64_t beats = 0, changed_ns = 0;
    bool beat = false;  // seen to change
  };
  std::map<int, Seen> ranks_;
};

}  // namespace tessera
