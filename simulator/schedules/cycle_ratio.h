// Events that recur step after step, and the time that a step takes them in the long run.
//
// An event of step k waits for others of step k or of earlier steps. Where nothing else holds them
// up, the time between two steps comes to be that of the slowest cycle: the most time around a
// cycle of waits for each step that it reaches back (Baccelli et al. 1992, "Synchronization and
// Linearity", theorem 3.28). Nanoseconds; pure functions of plain values.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera {

/// Event `event` of step k begins no earlier than `duration_ns` after event `on` of step
/// k - `steps` began.
struct EventWait {
  int event = 0, on = 0;
  std::int64_t duration_ns = 0;
  int steps = 0;  // at least 0
};

struct SlowestCycle {
  std::int64_t duration_ns = 0;
  std::int64_t steps = 0;  // that it reaches back; 0 = no cycle takes any time
  /// Each waits for the one before it, the first for the last; the smallest comes first.
  std::vector<int> events;

  double period_ns() const {
    return steps == 0 ? 0 : static_cast<double>(duration_ns) / static_cast<double>(steps);
  }
};

/// The cycle with the most time a step, by Howard's policy iteration (Boost.Graph). Preconditions:
/// events are numbered below `events`, and every cycle of waits reaches back a step or more.
SlowestCycle slowest_cycle(int events, const std::vector<EventWait>& waits);

}  // namespace tessera
