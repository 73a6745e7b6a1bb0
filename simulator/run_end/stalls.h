// Which rank of a run has stalled, from the signs of life in the ranks' files.
//
// A rank that is stopped, or whose host hangs, gives no sign of life. One that computes for ever
// gives them, but its peers wait for it and it waits for nobody. Clocks of the ranks' hosts do not
// matter: what counts is when this process saw something change. One owner, one thread.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <vector>

#include "simulator/timeline/rank_status.h"

namespace tessera {

struct Stall {
  int rank = 0;
  double seconds = 0;   // without a sign of life, or without having waited for anybody
  bool silent = false;  // no sign of life
};

class StallWatch {
 public:
  using Clock = std::chrono::steady_clock;

  /// Takes in what the ranks' files say. To be called several times a second: time in which this
  /// process was stopped itself (a suspended job) counts for no rank.
  void look(const std::vector<RankStatus>& ranks, Clock::time_point now);

  /// The rank that has been silent for longest, where that is longer than its limit.
  std::optional<Stall> over_limit() const;
  /// To be asked when a rank has waited in vain: the one that it waited for. None where nothing
  /// tells (ranks on GPUs do not say that they wait), or where no rank was still for half of the
  /// limit.
  std::optional<Stall> waited_for() const;

 private:
  struct Seen {
    std::int64_t beats = -1;
    Clock::time_point beat, waited;  // when a beat was last seen, and when it was seen waiting
    bool running = true;
    double limit_s = 0;
  };

  std::map<int, Seen> ranks_;
  Clock::time_point now_;
  bool some_wait_ = false;
};

}  // namespace tessera
