// Seconds that pass on this machine's steady clock.
#pragma once

#include <chrono>

namespace tessera {

/// Runs from its construction.
class Stopwatch {
 public:
  using Clock = std::chrono::steady_clock;

  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  Clock::time_point begin_ = Clock::now();
};

}  // namespace tessera
