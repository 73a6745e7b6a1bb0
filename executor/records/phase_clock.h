// When each phase ran on this rank: spans for the trace, seconds for the metrics.
//
// Nanoseconds since construction. One thread.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "simulator/timeline/timeline.h"

namespace tessera {

class PhaseClock {
 public:
  explicit PhaseClock(int rank) : rank_(rank) {}

  std::int64_t now_ns() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_).count();
  }

  /// Runs `body` as a part of `phase` in `step` and returns what it returns. A phase may have
  /// several parts in a step: its seconds add up.
  template <class Body>
  auto time(Phase phase, int step, Body&& body) {
    const Part part(*this, phase, step);
    return std::forward<Body>(body)();
  }

  /// timing_s/<phase> of the phases timed since the last call.
  std::map<std::string, double> take_seconds() { return std::exchange(seconds_, {}); }

  Timeline& timeline() { return timeline_; }

 private:
  using Clock = std::chrono::steady_clock;

  /// Adds its lifetime to the clock.
  struct Part {
    Part(PhaseClock& clock, Phase phase, int step)
        : clock(clock), phase(phase), step(step), start_ns(clock.now_ns()) {}
    ~Part() { clock.add(phase, step, start_ns); }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;
    PhaseClock& clock;
    Phase phase;
    int step;
    std::int64_t start_ns;
  };

  void add(Phase phase, int step, std::int64_t start_ns) {
    const std::int64_t end_ns = now_ns();
    const std::string name(name_of(phase));
    timeline_.spans.push_back({.start_ns = start_ns,
                               .end_ns = end_ns,
                               .rank = rank_,
                               .stream = Stream::phases,
                               .phase = phase,
                               .step = step,
                               .name = name});
    seconds_["timing_s/" + name] += static_cast<double>(end_ns - start_ns) * 1e-9;
  }

  int rank_;
  Clock::time_point start_ = Clock::now();
  std::map<std::string, double> seconds_;
  Timeline timeline_{.source = "measured"};
};

}  // namespace tessera
